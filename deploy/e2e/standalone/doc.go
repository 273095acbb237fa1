// Package standalone tries what can only be tried on a standalone process of
// one's own: that it is killed, that it stops, that several run side by side.
package standalone
