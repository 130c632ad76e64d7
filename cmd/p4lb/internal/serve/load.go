package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

// tlsConfig returns the TLS configuration of the server, or nil for none.
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
		return nil, fmt.Errorf("reading %s: no certificate found: want PEM", j.ca)
	}
	return config, nil
}
