package asm

import "testing"

// Debug has Call set all registers but BX, R12 and R13 to the number 0xbad. It
// is true in every test binary, also where a test runs it as a command. A
// benchmark may set it to false.
var Debug = testing.Testing()
