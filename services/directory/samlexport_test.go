package directory

// CheckSAMLCertificates is one check of the worker.
var CheckSAMLCertificates = (*Service).checkSAMLCertificates
