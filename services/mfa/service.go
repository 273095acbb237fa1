// Package mfa will own second factors: factors, challenges and phones, the
// codes that prove them, and the limits on guessing. There is nothing of it
// yet but the process: its schema, its private port, and its place behind the
// gateway, where each of its paths answers 404.
package mfa
