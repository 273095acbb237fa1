package purgesql

// SliceSize is about how many rows one transaction deletes.
const SliceSize = sliceSize
