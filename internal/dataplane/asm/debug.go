package asm

import "testing"

// Debug makes Call set all registers but BX, R12 and R13 to 0xbad. It is true
// in test binaries, also when a test runs its binary as a command. Benchmarks
// set it to false.
var Debug = testing.Testing()
