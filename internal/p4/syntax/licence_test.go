package syntax

import "testing"

func TestLicence(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"#include <core.p4>\n": "",
		"// SPDX-License-Identifier: Apache-2.0\r\n#include <core.p4>\n":         "Apache-2.0",
		"/*\n * SPDX-License-Identifier: MIT\n */\n":                             "MIT",
		"/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */":            "GPL-2.0-only OR BSD-3-Clause",
		"// a line that speaks of SPDX-License-Identifier: is not one of them\n": "",
	} {
		if got := Licence([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
