package asm

import "testing"

// Debug makes Call set all registers except BX, R12 and R13 to 0xbad. It is true in
// test binaries, including tests that run their binary as a command. Benchmarks set
// it to false.
var Debug = testing.Testing()
