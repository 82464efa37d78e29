package server

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

var beginning = []byte("-----BEGIN ")

// blocks decodes a text in PEM. A damaged block is an error: the standard library skips it, and clients of an authority
// then are refused, or miss a certificate of the chain.
func blocks(file string, text []byte) (all []*pem.Block, err error) {
	_, text, more := bytes.Cut(text, beginning)
	for more {
		var one []byte
		one, text, more = bytes.Cut(text, beginning)
		block, _ := pem.Decode(slices.Concat(beginning, one))
		if block == nil {
			return nil, fmt.Errorf("%s: block %d is damaged or cut off: copy the file again", file, len(all)+1)
		}
		all = append(all, block)
	}
	return all, nil
}

// certificatesIn returns the certificates in a text, which may have a key too.
func certificatesIn(file string, text []byte) (all []*x509.Certificate, err error) {
	found, err := blocks(file, text)
	if err != nil {
		return nil, err
	}
	for i, block := range found {
		switch {
		case block.Type == "CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("%s: block %d: %w", file, i+1, err)
			}
			all = append(all, c)
		case strings.Contains(block.Type, "CERTIFICATE"):
			return nil, fmt.Errorf("%s: block %d is a %s: only a CERTIFICATE is read; openssl x509 makes one of it", file, i+1, block.Type)
		}
	}
	return all, nil
}
