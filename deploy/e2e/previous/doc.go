// Package previous upgrades a deployment under load, from the release before to the
// sources around it, and back again on the new schema. The release before is the version
// that the file release names, by its tag; before the first release it is the commit that the
// file commit names. DOORWARD_PREVIOUS names another commit, a tag, or a folder with sources
// for one run. make upgrade runs it; make e2e does not.
package previous
