// Package distributed tries what can only be tried on many processes of one's
// own: replicas and the servers they share are killed while accounts register, and the
// end of a token is looked for at every replica.
package distributed
