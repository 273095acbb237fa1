// Package standalone has the tests that start standalone processes of their own: kill -9,
// graceful shutdown, several processes side by side.
package standalone
