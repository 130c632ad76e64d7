// Package netspace makes network namespaces of this machine and sets hosts of a
// topology up in them. It works on Linux alone, as root or within a user
// namespace.
package netspace
