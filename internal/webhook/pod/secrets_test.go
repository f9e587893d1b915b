// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// asProgram makes the test binary run the program itself.
const asProgram = "CONVERSION_OPERATOR_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// secretValue is in every value of every object of this test.
const secretValue = "not-to-be-told"

// logRecorder records all logs.
type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *logRecorder) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(line)
}

func (d *logRecorder) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *logRecorder) has(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.text.String(), text)
}

// TestLogsNoSecrets: the debug log of a converter contains names of objects, but no values,
// no part of its key, and no token of a client, whatever error occurs.
func TestLogsNoSecrets(t *testing.T) {
	rulesets, hash := mountSample(t)
	certificates, first := t.TempDir(), issued(t)
	mountCertificate(t, certificates, first)
	address, logged, stop := serve(t, rulesets, certificates)

	for _, body := range secretReviews() {
		call(t, address, webhook.ConvertPath+"/"+hash, body)
	}
	call(t, address, webhook.ConvertPath+"/unknown-ruleset", secretReviews()[0])
	sendPlaintext(t, address)
	second := issued(t)
	mountCertificate(t, certificates, pki.KeyPair{Certificate: second.Key, Key: second.Key})
	expect.Eventually(t, "a broken certificate is noticed", func() (bool, string) { return logged.has("The serving certificate cannot be loaded"), logged.String() })
	mountCertificate(t, certificates, second)
	expect.Eventually(t, "the next certificate is read", func() (bool, string) { return logged.has("Serving another certificate"), logged.String() })
	stop()

	expect.Contains(t, "the log", logged.String(), "Conversion failed", `"level":"debug"`, "TLS handshake error", "default/too-large")
	for _, secret := range append([]string{secretValue, "PRIVATE KEY"}, append(keyLines(first), keyLines(second)...)...) {
		expect.Equal(t, "the log has "+secret, false, logged.has(secret))
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

// mountSample compiles the rules of a sample as the manager does for converter pods.
func mountSample(t *testing.T) (directory, hash string) {
	t.Helper()
	policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
	for file, into := range map[string]any{"2-policy.yaml": policy, "3-crd-both.yaml": crd} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport", file))
		expect.NoError(t, err)
		expect.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	text, err := compile.Compile(crd, policy.Spec.Converter.Declarative).Ruleset.Marshal()
	expect.NoError(t, err)
	return mountRulesets(t, text), conversion.HashOf(text)
}

func issued(t *testing.T) pki.KeyPair {
	t.Helper()
	authority, err := pki.NewAuthority("converter", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, "localhost", time.Now(), time.Hour)
	expect.NoError(t, err)
	return leaf
}

func mountCertificate(t *testing.T, directory string, leaf pki.KeyPair) {
	t.Helper()
	for file, text := range map[string][]byte{"tls.crt": leaf.Certificate, "tls.key": leaf.Key} {
		expect.NoError(t, os.WriteFile(filepath.Join(directory, file), text, 0o600))
	}
}

// serve starts a converter. The caller must call stop.
func serve(t *testing.T, rulesets, certificates string) (address string, logged *logRecorder, stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	address, logged = listener.Addr().String(), &logRecorder{}
	_, port, _ := net.SplitHostPort(address) // it was made so
	listener.Close()
	program := exec.CommandContext(t.Context(), os.Args[0], "--rulesets="+rulesets, "--certificates="+certificates, "--bind-address=127.0.0.1:"+port,
		"--drain=0s", "--metrics-bind-address=0", "--log-level=debug")
	program.Env, program.Stderr = append(os.Environ(), asProgram+"=yes"), logged
	expect.NoError(t, program.Start())
	expect.Eventually(t, "it serves", func() (bool, string) { return logged.has("Serving conversions"), logged.String() })
	return address, logged, func() {
		expect.NoError(t, errors.Join(program.Process.Signal(syscall.SIGTERM), program.Wait()))
	}
}

// call sends a review as an API server does, with a token.
func call(t *testing.T, address, path, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a test's own server
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+path, strings.NewReader(body))
	expect.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+secretValue)
	response, err := client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	expect.NoError(t, err)
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
