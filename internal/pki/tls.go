// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import "crypto/tls"

// RequireModernTLS lets a server speak TLS 1.3, and 1.2 with those who cannot, such
// as API servers that were told so: with keys of the connection's own and ciphers that
// authenticate what they encrypt. That is what Mozilla calls intermediate, as of
// https://wiki.mozilla.org/Security/Server_Side_TLS, without its ciphers for
// browsers. Of TLS 1.3 there is nothing to choose.
func RequireModernTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.CipherSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}
