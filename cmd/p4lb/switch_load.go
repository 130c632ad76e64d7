package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
)

// program reads what --load names: BMv2 JSON with its P4Info, or P4, which is
// compiled. Without --load there is nothing.
func (j *switchJob) program() ([]byte, *configv1.P4Info, error) {
	switch {
	case j.load == "":
		return nil, nil, nil
	case filepath.Ext(j.load) == ".json":
		text, err := j.c.ReadSource(j.load)
		if err != nil {
			return nil, nil, err
		}
		info, err := j.readP4Info()
		return text, info, err
	}
	p, err := j.c.CheckProgram(j.load, j.sources)
	if err != nil {
		return nil, nil, err
	}
	if err := p.Lower(); err != nil {
		return nil, nil, j.c.Diagnose(err)
	}
	if err := p.Describe(); err != nil {
		return nil, nil, j.c.Diagnose(err)
	}
	if err := j.c.Warn(p.Warnings, false); err != nil {
		return nil, nil, err
	}
	if j.p4info == "" {
		return p.JSON(), p.P4Info, nil
	}
	info, err := j.readP4Info()
	return p.JSON(), info, err
}

// readP4Info reads the file named with --p4info, or the one that stands beside
// a JSON program.
func (j *switchJob) readP4Info() (*configv1.P4Info, error) {
	name := j.p4info
	if name == "" {
		base := strings.TrimSuffix(j.load, ".json")
		beside := []string{base + ".p4info.txtpb", base + ".txtpb", base + ".p4info.txt"} // as gen, compile and p4c's users call it
		i := slices.IndexFunc(beside, func(name string) bool { _, err := os.Stat(name); return err == nil })
		if i < 0 {
			return nil, cli.Hinted(fmt.Errorf("loading %s: its P4Info is missing", j.load), "name it with --p4info, or put it into %s", beside[0])
		}
		name = beside[i]
	}
	text, err := j.c.ReadSource(name)
	if err != nil {
		return nil, err
	}
	info := &configv1.P4Info{}
	if err := prototext.Unmarshal(text, info); err != nil {
		return nil, fmt.Errorf("reading %s: not P4Info in text form: %w", cli.DisplayName(name), err)
	}
	return info, nil
}

// tlsConfig is how clients connect, nil for without TLS.
func (j *switchJob) tlsConfig() (*tls.Config, error) {
	if j.cert == "" {
		return nil, nil
	}
	pair, err := cli.KeyPair(j.cert, j.key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if j.ca == "" {
		return config, nil
	}
	text, err := j.c.ReadSource(j.ca)
	if err != nil {
		return nil, err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading %s: there is no certificate in it", j.ca)
	}
	return config, nil
}
