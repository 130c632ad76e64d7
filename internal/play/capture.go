package play

import (
	"bytes"
	"fmt"

	"github.com/p4lb/p4lb/internal/device/ports"
)

// pcapPackets returns the first packets of a capture, and whether there are more.
func pcapPackets(data []byte, most int) (list [][]byte, cut bool, err error) {
	if list, err = ports.ReadCapture(bytes.NewReader(data), most+1); err != nil {
		return nil, false, fmt.Errorf("reading the capture: %w", err)
	}
	if len(list) > most {
		return list[:most], true, nil
	}
	return list, false, nil
}
