//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// host is the API server's address for converters.
const host = "localhost"

// converter acts as a converter pod.
type converter struct {
	plan      *conversion.Ruleset
	engine    *conversion.Converter
	bundle    []byte
	directory string
	port      int
	stop      func()
}

// newConverter starts a converter for a ruleset, which is encoded and decoded as for a converter
// pod.
func newConverter(t *testing.T, compiled *conversion.Ruleset) *converter {
	t.Helper()
	text, err := compiled.Marshal()
	expect.NoError(t, err)
	plan, err := conversion.Load(text)
	expect.NoError(t, err)
	engine, err := conversion.NewConverter(plan)
	expect.NoError(t, err)
	c := &converter{plan: plan, engine: engine, directory: t.TempDir(), port: freePort(t)}
	c.certify(t)
	c.start(t)
	return c
}

// certify issues the converter's certificate.
func (c *converter) certify(t *testing.T) {
	t.Helper()
	authority, err := pki.NewAuthority("converters of tests", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, host, time.Now(), time.Hour)
	expect.NoError(t, err)
	c.bundle = authority.Certificate
	expect.NoError(t, os.WriteFile(filepath.Join(c.directory, corev1.TLSCertKey), leaf.Certificate, 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(c.directory, corev1.TLSPrivateKeyKey), leaf.Key, 0o600))
}

// start starts the server, until stop or the end of the test.
func (c *converter) start(t *testing.T) {
	t.Helper()
	server, err := webhook.NewServer(c.handler(), webhook.ServerOptions{Address: c.address(), CertificateDirectory: c.directory, Log: logr.Discard()})
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.stop)
	expect.Success(t, "the converter listens", func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", c.address())
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// handler converts by the ruleset.
func (c *converter) handler() *webhook.Handler {
	return webhook.NewHandler([]webhook.Ruleset{{CRD: c.plan.CRD, Group: c.plan.Group, Kind: c.plan.Kind, Hash: c.plan.Hash(), Pairs: c.plan.Pairs(), Converter: c.engine}},
		webhook.HandlerOptions{Log: logr.Discard()})
}

// path is the URL path of the ruleset.
func (c *converter) path() string { return webhook.ConvertPath + "/" + c.plan.Hash() }

func (c *converter) address() string { return net.JoinHostPort(host, strconv.Itoa(c.port)) }

// conversion returns spec.conversion for this converter.
func (c *converter) conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL: new("https://" + c.address() + c.path()), CABundle: c.bundle,
			},
		},
	}
}

// The ports of converters are below those that the kernel gives to connections and to listeners that ask for
// any port: a converter stops and listens again.
const (
	firstPort = 20000
	portCount = 12000
)

// port is the last port of a converter, counted from the first one. Other processes begin elsewhere.
var port = func() *atomic.Int64 {
	begin := new(atomic.Int64)
	begin.Store(rand.Int64N(portCount))
	return begin
}()

// freePort returns a port without a listener, which no other converter of this process has.
func freePort(t *testing.T) int {
	t.Helper()
	for range portCount {
		next := firstPort + int(port.Add(1)%portCount)
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+strconv.Itoa(next))
		if err == nil {
			expect.NoError(t, listener.Close())
			return next
		}
	}
	t.Fatal("there is no free port")
	return 0
}

// countReviews configures a server for the kind that counts reviews, and returns a function with their number since its
// last call.
func (k *kind) countReviews(t *testing.T) (taken func() int64) {
	t.Helper()
	var count atomic.Int64
	taken = func() int64 { return count.Swap(0) }
	handler := k.handler()
	server, bundle := reviews.Begin(t, func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		handler.ServeHTTP(w, r)
	}, host, time.Now(), (*httptest.Server).StartTLS)
	address := strings.Replace(server.URL, "127.0.0.1", host, 1) + k.path()
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion.Webhook.ClientConfig.URL, crd.Spec.Conversion.Webhook.ClientConfig.CABundle = &address, bundle
	})
	expect.Success(t, "the API server comes here", func(ctx context.Context) error {
		if err := k.writeMarker(ctx, t, "v1beta1", 1); err != nil {
			return err
		}
		if taken() == 0 {
			return errors.New("it has not come")
		}
		return nil
	})
	return taken
}

// expense is the minimum and maximum number of reviews of an operation. A write at another version
// has an arbitrary number, which is not small.
type expense struct {
	what        string
	do          func() error
	least, most int64
}

// testReviews counts reviews, each of which has one object. Gadgets are stored at v1, and there are two
// other versions. The watch cache of a version converts each written object once, and then lists without
// conversions.
func testReviews(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "reviews")
	taken := k.countReviews(t)
	listed, cached := int64(2), int64(0)
	if s.cached {
		listed, cached = 0, 2
	}
	create := func(name string) func() error {
		return func() error {
			return ignore(k.at("v1").Create(t.Context(), k.gadget(t, "v1", name, spec("v1", "a")), metav1.CreateOptions{}))
		}
	}
	get := func(version string) func() error {
		return func() error { return ignore(k.at(version).Get(t.Context(), "one", metav1.GetOptions{})) }
	}
	list := func(version string) func() error {
		return func() error { return ignore(k.at(version).List(t.Context(), metav1.ListOptions{})) }
	}
	update := func(version string) func() error {
		return func() error { return k.replace(t, version, "one", spec(version, "b")) }
	}
	apply := func(version string) func() error {
		return func() error { return ignore(k.apply(t, version, version, "spec: {team: red}", true)) }
	}
	for _, e := range []expense{
		{"create at v1", create("one"), cached, cached},
		{"create at v1", create("two"), cached, cached},
		{"get at v1", get("v1"), 0, 0},
		{"get at v1beta1", get("v1beta1"), 1, 1},
		{"list at v1", list("v1"), 0, 0},
		{"list at v1beta1", list("v1beta1"), listed, listed},
		{"update at v1", update("v1"), cached, cached},
		{"get and update at v1beta1", update("v1beta1"), cached + 2, cached + 12},
		{"apply at v1beta1", apply("v1beta1"), cached + 2, cached + 12},
		{"apply at v1 over managers at v1beta1", apply("v1"), cached + 1, cached + 12},
		{"delete at v1beta1", func() error { return k.at("v1beta1").Delete(t.Context(), "one", metav1.DeleteOptions{}) }, cached + 1, cached + 12},
	} {
		k.converge(t)
		taken()
		expect.NoError(t, e.do())
		k.converge(t)
		count := taken()
		t.Logf("%s: %d reviews", e.what, count)
		if count < e.least || count > e.most {
			t.Errorf("%s: %d reviews, want %d to %d", e.what, count, e.least, e.most)
		}
	}
}

func ignore[T any](_ T, err error) error { return err }

// converge waits until the watch caches are up to date: a list returns only then.
func (k *kind) converge(t *testing.T) {
	t.Helper()
	if !k.cached {
		return
	}
	for _, version := range versions {
		k.names(t, version, metav1.ListOptions{})
	}
}

// ownMetrics are the metrics of API servers that alerts and dashboards use. Most are alpha: other
// versions of Kubernetes may rename them.
var ownMetrics = []string{
	"apiserver_conversion_webhook_duration_seconds",
	"apiserver_conversion_webhook_request_total",
	"apiserver_crd_conversion_webhook_duration_seconds",
	"apiserver_flowcontrol_request_wait_duration_seconds",
	"apiserver_request_total",
	"apiserver_requested_deprecated_apis",
}

// testOwnMetrics converts, and reads a deprecated version. Then the API server has all documented
// metrics.
func testOwnMetrics(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "counted")
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Deprecated = crd.Spec.Versions[i].Name == "v1beta1"
		}
	})
	k.create(t, "v1", "one", spec("v1", "a"))

	config := rest.CopyConfig(s.Kubeconfig)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	expect.NoError(t, err)
	var scraped []byte
	expect.Success(t, "the API server counts a request for a deprecated version", func(ctx context.Context) error {
		k.get(t, "v1beta1", "one")
		scraped, err = client.Get().AbsPath("/metrics").DoRaw(ctx)
		if err == nil && !strings.Contains(string(scraped), `apiserver_requested_deprecated_apis{group="`+k.group+`"`) {
			err = errors.New("it does not know yet that the version is deprecated")
		}
		return err
	})
	metricstable.Table{Page: "../../../api/docs/metrics.md", Name: "API SERVER METRICS", Names: ownMetrics}.Check(t, string(scraped))
}
