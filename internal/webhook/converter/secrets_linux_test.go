// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// secretValue is in every value of every object of this test, and in tokens of clients.
const secretValue = "not-to-be-told"

// TestLogsNoSecrets: the debug log of a converter contains names of objects, but no values,
// no part of its key, and no token of a client, whatever error occurs.
func TestLogsNoSecrets(t *testing.T) {
	v := run(t, sampleRuleset(t), "--log-level=debug")
	first, second, client := v.leaf, issued(t), v.client(t, "127.0.0.1")
	for _, body := range secretReviews() {
		v.send(t.Context(), client, hostile{method: http.MethodPost, path: webhook.ConvertPath + "/" + v.hash}, body)
	}
	v.send(t.Context(), client, hostile{method: http.MethodPost, path: webhook.ConvertPath + "/unknown-ruleset"}, secretReviews()[0])
	sendPlaintext(t, v.address)
	logs := func(text string) {
		t.Helper()
		expect.Eventually(t, "the log has "+text, func() (bool, string) { return strings.Contains(v.log.String(), text), v.log.String() })
	}
	v.mount(t, pki.KeyPair{Certificate: second.Key, Key: second.Key})
	logs("The serving certificate cannot be loaded")
	v.mount(t, second)
	logs("Serving another certificate")
	v.end()

	expect.Contains(t, "the log", v.log.String(), "Conversion failed", `"level":"debug"`, "TLS handshake error", "default/too-large")
	for _, secret := range append([]string{secretValue, "PRIVATE KEY"}, append(keyLines(first), keyLines(second)...)...) {
		expect.Equal(t, "the log has "+secret, false, strings.Contains(v.log.String(), secret))
	}
}

// secretReviews are reviews of objects that convert, that have preserved data, and that cannot be
// converted for every reason.
func secretReviews() []string {
	review := func(to, object string) string {
		return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"` + to + `","objects":[` + object + `]}}`
	}
	object := func(version, name, rest string) string {
		return `{"apiVersion":"example.com/` + version + `","kind":"CronTab","metadata":{"namespace":"default","name":"` + name + `"` + rest + `}`
	}
	return []string{
		review("example.com/v1", object("v1beta1", "converts", `},"hostPort":"`+secretValue+`:80","note":"`+secretValue+`"`)),
		review("example.com/v1", object("v1beta1", "does-not-parse", `},"hostPort":"`+secretValue+`"`)),
		review("example.com/v1beta1", object("v1", "comes-back", `,"annotations":{"conversion-operator.io/v1beta1.crontabs.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/note\":\"`+secretValue+`\"}}"}},"host":"`+secretValue+`"`)),
		review("example.com/v1beta1", object("v1", "is-forged", `,"annotations":{"conversion-operator.io/v1beta1.crontabs.example.com":"{\"format\":2,\"fields\":{\"/note\":`+secretValue+`}}"}},"host":"`+secretValue+`"`)),
		review("example.com/v1", object("v1beta1", "too-large", `},"note":"`+secretValue+incompressible.Text(300<<10)+`"`)),
		review("example.com/v1", object("v1beta1", "wrong-types", `},"hostPort":{"`+secretValue+`":["`+secretValue+`"]},"replicas":"`+secretValue+`"`)),
		review("example.com/v7", object("v1beta1", "no-such-version", `},"note":"`+secretValue+`"`)),
		review("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"broken"},"note":"`+secretValue+`",}`),
		review("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"ends"},"note":`+secretValue+`}`),
		review("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"Other","metadata":{"name":"another-kind"},"note":"`+secretValue+`"}`),
		review("example.com/v1", `"`+secretValue+`"`),
		secretValue,
		`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":["` + secretValue + `"`,
	}
}

// sendPlaintext sends a request without TLS.
func sendPlaintext(t *testing.T, address string) {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	expect.NoError(t, err)
	defer connection.Close()
	_, err = io.WriteString(connection, "GET /"+secretValue+" HTTP/1.1\r\nAuthorization: Bearer "+secretValue+"\r\n\r\n")
	expect.NoError(t, err)
	if _, err := io.Copy(io.Discard, connection); err != nil {
		t.Log(err) // it is cut
	}
}

// keyLines returns the lines of a private key that no other text has.
func keyLines(leaf pki.KeyPair) []string {
	var lines []string
	for line := range strings.Lines(string(leaf.Key)) {
		if line = strings.TrimSpace(line); len(line) > 40 {
			lines = append(lines, line)
		}
	}
	return lines
}
