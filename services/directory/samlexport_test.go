package directory

// CheckSAMLCertificates is one check of the worker.
var CheckSAMLCertificates = (*Service).checkSAMLCertificates

// UseAssertion refuses an assertion that was used already.
var UseAssertion = (*Service).useAssertion
