// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/webhook/internal/testca"
)

// asConverter makes the test binary serve, as a converter pod with the default memory limit does.
const asConverter = "CONVERSION_OPERATOR_AS_CONVERTER"

// The rules look into lists and maps, and use what takes most memory.
const (
	hostileV1 = `{l: {type: array, items: {type: object, properties: {a: {type: string}, p: {type: string}}}},
		m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
		i: {type: array, items: {type: object, properties: {k: {type: string}}}},
		s: {type: string}, j: {type: string}, t: {type: string}, any: {x-kubernetes-preserve-unknown-fields: true}}`
	hostileV2 = `{l: {type: array, items: {type: object, properties: {b: {type: string}, c: {type: string}}}},
		m: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}},
		i: {type: object, additionalProperties: {type: object}},
		s: {type: array, items: {type: object, properties: {a: {type: string}}}}, j: {type: array, items: {type: string}},
		t: {type: array, items: {type: string}}, any: {x-kubernetes-preserve-unknown-fields: true}}`
	hostileRules = `{hub: v2, spokes: [{version: v1, rules: [
		{move: {from: ".spec.l[*].a", to: ".spec.l[*].b"}}, {default: {to: ".spec.l[*].c", value: a-default-that-is-longer-than-the-element-which-gets-it}},
		{move: {from: ".spec.m[*].a", to: ".spec.m[*].b"}}, {index: {from: .spec.i, to: .spec.i, key: k}},
		{cast: {from: .spec.s, to: .spec.s, as: YAML}}, {cast: {from: .spec.j, to: .spec.j, as: JSON}},
		{cel: {from: {t: .spec.t}, to: {t: .spec.t}, forward: {t: "self.t.split(',')"}, backward: {t: "self.t.join(',')"}}}]}]}`
)

// hostileRuleset compiles the rules.
func hostileRuleset(t testing.TB) Ruleset {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	var rules v1alpha1.DeclarativeConverter
	version := func(name, schema, storage string) string {
		return "{name: " + name + ", served: true, storage: " + storage + ", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: " + schema + "}}}}}"
	}
	expect.NoError(t, yaml.Unmarshal([]byte("{metadata: {name: "+crontabs+"}, spec: {group: example.com, scope: Namespaced, names: {kind: CronTab, plural: crontabs}, versions: ["+
		version("v1", hostileV1, "false")+", "+version("v2", hostileV2, "true")+"]}}"), &crd))
	expect.NoError(t, yaml.UnmarshalStrict([]byte(hostileRules), &rules))
	compiled := compile.Compile(&crd, &rules)
	if compiled.Ruleset == nil {
		t.Fatalf("the rules are refused: %v", compiled.Errors)
	}
	text, err := compiled.Ruleset.Marshal()
	expect.NoError(t, err)
	ruleset, err := LoadRuleset(conversion.HashOf(text), conversion.Store(text))
	expect.NoError(t, err)
	ruleset.Hash = "abc"
	return ruleset
}

// TestHostileServer is not a test: it serves for those below.
func TestHostileServer(t *testing.T) {
	directory := os.Getenv(asConverter)
	if directory == "" {
		t.Skip("it is part of other tests")
	}
	handler := NewHandler([]Ruleset{hostileRuleset(t)}, HandlerOptions{MemoryLimit: DefaultMemoryLimit / 5 * 4, Log: logr.Discard()})
	handler.fit()
	server, err := NewServer(handler, ServerOptions{CertificateDirectory: directory, MetricsAddress: "127.0.0.1:0", Log: logr.Discard()})
	expect.NoError(t, err)
	conversions, metrics := listen(t), listen(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other process ends, or closes it
		stop()
	}()
	fmt.Fprintf(os.Stdout, "%s %s\n", conversions.Addr(), metrics.Addr())
	expect.NoError(t, server.serve(ctx, conversions, metrics))
}

// victim is the process of a converter.
type victim struct {
	address, metrics string
	pid              int
}

func startVictim(t *testing.T) *victim {
	t.Helper()
	directory := t.TempDir()
	(&mounted{t: t, directory: directory}).mount(testca.New(t).Issue(t, serviceName, hours(1)))
	command := exec.Command(os.Args[0], "-test.run=^TestHostileServer$", "-test.timeout=0")
	command.Env = append(os.Environ(), asConverter+"="+directory, fmt.Sprint("GOMEMLIMIT=", DefaultMemoryLimit/5*4))
	output, err := command.StdoutPipe()
	expect.NoError(t, err)
	input, err := command.StdinPipe()
	expect.NoError(t, err)
	command.Stderr = os.Stderr
	expect.NoError(t, command.Start())
	v := &victim{pid: command.Process.Pid}
	_, err = fmt.Fscan(bufio.NewReader(output), &v.address, &v.metrics)
	expect.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, output) }()
	t.Cleanup(func() {
		input.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the converter: %v", err)
		}
	})
	return v
}

// peak returns the highest resident memory of the process so far.
func (v *victim) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(v.pid), "status"))
	expect.NoError(t, err)
	var kib int64
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscan(after, &kib)
	expect.NoError(t, err)
	return kib << 10
}

// client connects from an address of this machine.
func (v *victim) client(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's own server
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// hostile is a kind of request, with a body of about a size.
type hostile struct {
	method, path string
	body         func(size int) string
}

// send sends a request, of its body only a part, and returns the answer, or why there was none.
func (v *victim) send(ctx context.Context, client *http.Client, request hostile, body string, part int) (status int, answer string) {
	made, err := http.NewRequestWithContext(ctx, request.method, "https://"+v.address+request.path, strings.NewReader(body))
	if err == nil && part < len(body) {
		made.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:part]), stalled{ctx}))
	}
	var response *http.Response
	if err == nil {
		made.Header.Set("Content-Type", "application/json")
		response, err = client.Do(made)
	}
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text) + fmt.Sprint(err)
}

// stalled is a body that does not go on.
type stalled struct{ context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.Done()
	return 0, s.Err()
}

// serves checks that a client that behaves well is answered. API servers try again after a second, ten times.
func (v *victim) serves(t *testing.T, client *http.Client) {
	t.Helper()
	body := conversionOf(`{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a","uid":"a"},"spec":{"l":[{"a":"x"}]}}`)
	expect.Eventually(t, "it answers", func() (bool, string) {
		status, answer := v.send(t.Context(), client, hostile{method: http.MethodPost, path: testPath}, body, len(body))
		return status == http.StatusOK && strings.Contains(answer, `"b":"x"`), fmt.Sprint(status, answer)
	})
}

func conversionOf(objects string) string {
	return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v2","objects":[` + objects + `]}`)
}

// fill repeats an element up to a size.
func fill(begin, element, end string) func(size int) string {
	return func(size int) string {
		rest := size - len(begin) - len(end)
		count := max(rest/(len(strings.ReplaceAll(element, "%d", "123456"))+1), 1)
		return repeated(begin, element, end)(count)
	}
}

// bomb is an annotation with much preserved data that is compressed.
func bomb() string {
	var packed bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	writer, _ := flate.NewWriter(encoder, flate.BestCompression)
	_, _ = io.WriteString(writer, fill(`{"format":2,"fields":{`, `"/spec/l/%d/p":""`, `}}`)(4<<20-1000))
	_, _ = writer.Close(), encoder.Close()
	return `{\"format\":2,\"deflate\":\"` + packed.String() + `\"}`
}

// contents are those of objects that take much memory for their size.
var contents = map[string]func(size int) string{
	"annotations":       fill(`"metadata":{"name":"a","annotations":{`, `"%d":""`, `}}`),
	"labels":            fill(`"metadata":{"labels":{`, `"%d":""`, `},"name":"a"}`),
	"elements":          fill(`"spec":{"l":[`, `{}`, `]}`),
	"elements with uid": fill(`"metadata":{"name":"a","uid":"a"},"spec":{"l":[`, `{}`, `]}`),
	"no elements":       fill(`"spec":{"l":[`, `0`, `]}`),
	"preserved":         fill(`"metadata":{"name":"a","uid":"a"},"spec":{"l":[`, `{"a":"","p":""}`, `]}`),
	"entries":           fill(`"spec":{"m":{`, `"%d":{}`, `}}`),
	"index":             fill(`"spec":{"i":[`, `{"k":"%d"}`, `]}`),
	"YAML":              fill(`"spec":{"s":"[`, `{}`, `]"}`),
	"YAML of lines":     fill(`"spec":{"s":"`, `- a\n`, `"}`),
	"JSON":              fill(`"spec":{"j":"[`, `[]`, `]"}`),
	"JSON of texts":     fill(`"spec":{"j":"[`, `\"\"`, `]"}`),
	"cel":               fill(`"spec":{"t":"`, ``, `"}`),
	"free":              fill(`"spec":{"any":[`, `0`, `]}`),
	"depth":             func(size int) string { return `"spec":{"any":` + strings.Repeat("[", size) + `}` },
	"depth of a list":   func(size int) string { return `"spec":{"l":` + strings.Repeat(`[{"a":`, size/6) + `}` },
	"a long key":        func(size int) string { return `"spec":{"m":{"` + strings.Repeat(`k`, size) + `":{"a":"x"}}}` },
	"a key of escapes":  func(size int) string { return `"spec":{"m":{"` + strings.Repeat(`\u0001`, size/6) + `":{"a":"x"}}}` },
	"a text of escapes": func(size int) string { return `"spec":{"s":"` + strings.Repeat(`\u0001`, size/6) + `"}` },
	"a long number":     func(size int) string { return `"spec":{"any":` + strings.Repeat("9", size) + `}` },
	"a twice":           fill(`"spec":{"m":{`, `"a":{}`, `}}`),
	"a long name":       func(size int) string { return `"metadata":{"name":"` + strings.Repeat("<", size) + `"},"spec":0` },
	"not the kind":      func(size int) string { return `"kind":"` + strings.Repeat(`\u0001`, size/6) + `"` },
	"a bomb": func(int) string {
		return `"metadata":{"annotations":{"conversion-operator.io/v2.` + crontabs + `":"` + bomb() + `"}}`
	},
	"many kinds of keys": fill(`"spec":{"any":{`, `"k%d":{"a":[1,"\u00e4",null,true,{"b":1e10}]}`, `}}`),
}

// requests are hostile requests to all paths.
var requests = func() map[string]hostile {
	type body = func(size int) string
	object := func(content string) string { return `{"apiVersion":"example.com/v1","kind":"CronTab",` + content + `}` }
	around := func(begin string, content body, end string) body {
		return func(size int) string { return begin + content(size) + end }
	}
	repeat := func(text string, length int) body {
		return func(size int) string { return strings.Repeat(text, size/length) }
	}
	all := map[string]hostile{}
	conversion := func(name string, body body) { all["conversion: "+name] = hostile{http.MethodPost, testPath, body} }
	admission := func(name, begin string, content body, end string) {
		const review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`
		all["admission: "+name] = hostile{http.MethodPost, AdmitPath + "/abc", around(review+begin, content, end+`}}`)}
	}
	for name, content := range contents {
		whole := func(size int) string { return object(content(size)) }
		conversion(name, func(size int) string { return conversionOf(whole(size)) })
		admission(name, `"operation":"UPDATE","object":`, whole, ``)
		admission("deletion: "+name, `"operation":"DELETE","oldObject":`, whole, ``)
	}
	admission("dryRun", `"options":`, fill(`{"dryRun":[`, `""`, `]}`), ``)
	admission("userInfo", `"userInfo":`, fill(`{"groups":[`, `""`, `]}`), ``)
	admission("uid", `"uid":"`, repeat("<", 1), `"`)
	admission("members", ``, fill(``, `"%d":0`, ``), ``)
	small := fill(``, object(`"metadata":{"name":"a"}`), ``)
	conversion("many objects", func(size int) string { return conversionOf(small(size)) })
	conversion("empty objects", func(size int) string { return conversionOf(fill(``, `{}`, ``)(size)) })
	conversion("objects before", around(`{"kind":"ConversionReview","apiVersion":"`+reviewV1+`","request":{"objects":[`, small, `],"uid":"u","desiredAPIVersion":"example.com/v2"}}`))
	conversion("a long uid", func(size int) string { return v1Review(`{"uid":"` + repeat("<", 1)(size) + `"}`) })
	conversion("a long version", func(size int) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"` + repeat(`\u0001`, 6)(size) + `","objects":[{}]}`)
	})
	conversion("a probe", func(size int) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"` + ProbeGroup + `/v2","objects":[` + fill(`{"apiVersion":"`+ProbeGroup+`/v1","kind":"`+ProbeKind+`","spec":[`, `""`, `]}`)(size) + `]}`)
	})
	conversion("no JSON", repeat("<", 1))
	conversion("spaces", repeat(" ", 1))
	conversion("members", fill(`{`, `"%d":0`, `}`))
	conversion("a member of escapes", around(`{"`, repeat(`\u0001`, 6), `":0}`))
	for _, path := range []string{ConvertPath + "/other", AdmitPath + "/other", RulesetsPath, FailuresPath, HealthPath, "/" + strings.Repeat("x", 3000)} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			all[fmt.Sprintf("%s %.20s", method, path)] = hostile{method, path, repeat("x", 1)}
		}
	}
	return all
}()

// TestManySlowCalls: calls that announce a body and send one byte of it hold next to nothing, and clients of other
// addresses are answered at once.
func TestManySlowCalls(t *testing.T) {
	server := start(t, newTestHandler())
	accepted := 0
	for range 600 {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.address)
		expect.NoError(t, err)
		t.Cleanup(func() { connection.Close() })
		slow := tls.Client(connection, &tls.Config{RootCAs: server.authority.Pool(), ServerName: serviceName})
		if _, err := io.WriteString(slow, "POST "+testPath+" HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n{"); err == nil {
			accepted++
		}
	}
	if limit := int(server.handler.limiters.connections.Load()); accepted < 100 || accepted > limit/2 {
		t.Errorf("%d connections are accepted, of %d", accepted, limit)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: server.authority.Pool(), ServerName: serviceName}}}
	defer other.CloseIdleConnections()
	expect.Equal(t, "status of another client", http.StatusOK, server.call(t, other, http.MethodPost, testPath, v1Review(twoObjects)).Status)
	expect.Equal(t, "bytes in flight", 0, server.handler.limiters.used())
}

// TestHostileBodies: the worst bodies of each path keep a converter below its memory limit, one after the other, and 24 at
// a time, and a client that behaves well is answered.
func TestHostileBodies(t *testing.T) {
	v := startVictim(t)
	bad, good := v.client(t, "127.0.0.1"), v.client(t, "127.0.0.2")
	v.serves(t, good)
	check := func(what string) {
		t.Helper()
		peak := v.peak(t)
		if t.Logf("%4d MiB: %s", peak>>20, what); peak > DefaultMemoryLimit {
			t.Errorf("%s: %d MiB", what, peak>>20)
		}
		// The next peak is counted from what the process has now.
		expect.NoError(t, os.WriteFile(filepath.Join("/proc", strconv.Itoa(v.pid), "clear_refs"), []byte("5"), 0))
	}
	check("at rest")
	names := slices.Sorted(maps.Keys(requests))
	send := func(name string, size int) {
		body := requests[name].body(size)
		v.send(t.Context(), bad, requests[name], body, len(body))
	}
	sizes := []int{int(DefaultMaxBodyBytes) * 9 / 20}
	if release.Playing() {
		sizes = append(sizes, int(DefaultMaxBodyBytes)-1000, 450<<10)
	}
	for _, size := range sizes {
		for _, name := range names {
			send(name, size)
			check(fmt.Sprint(name, " of ", size))
		}
		v.serves(t, good)
		const parallel = 24
		for next := range slices.Chunk(names, parallel) {
			var flood sync.WaitGroup
			for i := range parallel {
				flood.Go(func() { send(next[i%len(next)], size) })
			}
			v.serves(t, good)
			flood.Wait()
			check(fmt.Sprintf("24 of %d bytes: %v", size, next))
		}
	}
}

// TestHostileClients: a converter stays below its memory limit, and answers a client that behaves well, whatever
// others send it: random bodies, whole and in part, slowly, on many connections.
func TestHostileClients(t *testing.T) {
	count := 300
	if release.Playing() {
		count = 100_000
	}
	v := startVictim(t)
	good := v.client(t, "127.0.0.2")
	v.serves(t, good)
	alone := v.slowest(t, good, 200, nil)
	left := make(chan int, count)
	for i := range count {
		left <- i
	}
	close(left)
	var flood sync.WaitGroup
	for worker := range 24 {
		bad := v.client(t, fmt.Sprint("127.0.1.", 1+worker%4))
		flood.Go(func() {
			for i := range left {
				v.attack(t, bad, rand.New(rand.NewPCG(1, uint64(i)))) //nolint:gosec // it is to be repeatable
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		flood.Wait()
		close(ended)
	}()
	beside := v.slowest(t, good, 0, ended)
	if peak := v.peak(t); peak > DefaultMemoryLimit {
		t.Errorf("highest memory: %d MiB", peak>>20)
	}
	t.Logf("%d requests, highest memory: %d MiB; a client that behaves well: %v alone, %v beside them", count, v.peak(t)>>20, alone, beside)
}

// slowest calls as a client that behaves well, some times or until the end, and returns the median and the longest time.
func (v *victim) slowest(t *testing.T, client *http.Client, times int, ended <-chan struct{}) (took [2]time.Duration) {
	t.Helper()
	var all []time.Duration
	for i := 0; times == 0 || i < times; i++ {
		began := time.Now()
		v.serves(t, client)
		all = append(all, time.Since(began))
		select {
		case <-ended:
			times = i
		default:
		}
	}
	slices.Sort(all)
	return [2]time.Duration{all[len(all)/2], all[len(all)-1]}
}

// attack sends one random request, which may be changed, or sent in part.
func (v *victim) attack(t *testing.T, client *http.Client, r *rand.Rand) {
	t.Helper()
	size := []int{100, 10 << 10, 60 << 10, 300 << 10}[r.IntN(4)]
	if r.IntN(50) == 0 {
		size = int(DefaultMaxBodyBytes) - 1000
	}
	request := requests[slices.Sorted(maps.Keys(requests))[r.IntN(len(requests))]]
	body := []byte(request.body(size))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	part := len(body)
	switch r.IntN(4) {
	case 0:
		const letters = "\"{}[],:\\0 \x00"
		for range r.IntN(10) {
			body[r.IntN(len(body))] = letters[r.IntN(len(letters))]
		}
	case 1:
		part = r.IntN(len(body))
	}
	v.send(ctx, client, request, string(body), part)
}
