// Package netspace creates network namespaces on this machine and configures hosts of a topology
// in them. It works only on Linux, as root or in a user namespace.
package netspace
