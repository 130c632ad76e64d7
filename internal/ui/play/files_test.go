package play

import (
	"fmt"
	"testing"
)

// TestFiles saves the page to a file, opens it again, and reads a capture. The capture was
// written by hand: one Ethernet frame in a pcap file of microseconds.
func TestFiles(t *testing.T) {
	b := opened(t)
	give := func(id, content string) {
		t.Helper()
		b.Eval(fmt.Sprintf(`(() => {
			const list = new DataTransfer(), i = document.getElementById(%q);
			list.items.add(new File([%s], 'given'));
			i.files = list.files;
			i.dispatchEvent(new Event('change'));
		})()`, id, content))
	}
	choose(b, "source", "row:drill")
	b.Until(checked + `.includes('compiles')`)
	edit(t, b, "Parser.", "Parser of mine.")
	// The test intercepts the file that the page gives to the browser.
	b.Eval(`(() => { const made = URL.createObjectURL; URL.createObjectURL = blob => { blob.text().then(s => window.saved = s); return made(blob); }; document.querySelector('#save').click(); })()`)
	b.Until(`window.saved !== undefined`)
	b.Eval(`window.confirm = () => true`)
	choose(b, "source", "row:rps")
	b.Until(`document.querySelector('#files button').dataset.name === 'rps.p4' && ` + checked + `.includes('compiles')`)
	give("file", "window.saved")
	b.Until(`document.querySelector('#source').value === 'row:drill' && document.querySelector('#program textarea').value.includes('Parser of mine.') && ` + checked + `.includes('compiles')`)
	// Files that the page cannot open.
	for content, want := range map[string]string{`'{"v":1,'`: "not a file of the playground", `'[]'`: "not a file of the playground", `new Uint8Array(5 << 20)`: "want at most 4 MB"} {
		b.Eval(`document.querySelector('#alert').textContent = ''`)
		give("file", content)
		b.Until(says + fmt.Sprintf(`.includes(%q)`, want))
	}
	// A frame of 14 bytes from port 3.
	b.Eval(`document.querySelector('#tab-packets').click(); document.querySelector('#pcap-port').value = 3`)
	give("pcap", "Uint8Array.from('"+
		"d4c3b2a1 0200 0400 00000000 00000000 ffff0000 01000000"+
		"00000000 00000000 0e000000 0e000000 001122334455 667788990a0b 0800'.replace(/ /g, '').match(/../g).map(x => parseInt(x, 16)))")
	b.Until(`document.querySelector('#test textarea').value.includes('packet 3 001122334455')`)
	b.Quiet()
}

// TestCollective runs a collective that the settings write.
func TestCollective(t *testing.T) {
	b := opened(t)
	b.Eval(`(() => { document.querySelector('#tab-network').click(); const f = document.querySelector('#settings-form'); f.kind.value = 'collective'; f.size.value = '256KB'; f.dispatchEvent(new Event('change')); })()`)
	b.Until(`document.querySelector('#yaml textarea').value.includes('collective: all-reduce')`)
	b.Eval(`document.querySelector('#run').click()`)
	b.Until(`document.querySelector('#result thead') && document.querySelector('#result thead').textContent.includes('cct') && document.querySelectorAll('#result figure img').length > 2`)
	b.Shoot("play-collective-1400-light")
	b.Quiet()
}
