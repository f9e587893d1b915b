// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

const (
	apiOfDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com"
	apiOfService    = "/api/v1/namespaces/shop/services/crontabs"
	apiOfSlices     = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
	apiOfForward    = "/api/v1/namespaces/shop/pods/crontabs-1/portforward"
)

// discovered says what an API server serves.
var discovered = map[string]string{
	"/api":  "{kind: APIVersions, versions: [v1]}",
	"/apis": "{kind: APIGroupList, apiVersion: v1, groups: [{name: apiextensions.k8s.io, versions: [{groupVersion: apiextensions.k8s.io/v1, version: v1}]}]}",
	"/apis/apiextensions.k8s.io/v1": `{kind: APIResourceList, apiVersion: v1, groupVersion: apiextensions.k8s.io/v1,
  resources: [{name: customresourcedefinitions, kind: CustomResourceDefinition, verbs: [get]}]}`,
}

// apiServer answers with objects, refuses watches, and forwards ports to one address, like an API server and a
// kubelet.
type apiServer struct {
	*testing.T
	// objects are in YAML, by the path of the request. Those that begin with a number are an HTTP status and its reason.
	objects map[string]string
	forward string
}

// start returns the URL of the server, which runs until the test ends.
func (s *apiServer) start() string {
	server := httptest.NewServer(s)
	s.Cleanup(server.Close)
	return server.URL
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object, found := s.objects[r.URL.Path]
	switch {
	case r.URL.Query().Has("watch"):
		object = "403 Forbidden"
	case !found && discovered[r.URL.Path] != "":
		object = discovered[r.URL.Path]
	case !found:
		object = "404 NotFound"
	case r.URL.Path == apiOfForward && object == "" && r.Method == http.MethodGet:
		http.Error(w, "no WebSockets here", http.StatusBadRequest) // clients then use SPDY
		return
	case r.URL.Path == apiOfForward && object == "":
		s.forwardPorts(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var status int
	var reason string
	if _, err := fmt.Sscan(object, &status, &reason); err == nil {
		w.WriteHeader(status)
		object = fmt.Sprintf("{kind: Status, apiVersion: v1, status: Failure, message: 'said by the API server: %s', reason: %s, code: %d}", strings.ToLower(reason), reason, status)
	}
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		s.Error(err)
	}
	_, _ = w.Write(text)
}

// forwardPorts connects each pair of streams of a client with the address.
func (s *apiServer) forwardPorts(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		s.Error(err)
		return
	}
	errorStreams := sync.Map{}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, sent <-chan struct{}) error {
		id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
		if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			errorStreams.Store(id, stream)
			return nil
		}
		go func() {
			<-sent
			errors, _ := errorStreams.Load(id)
			s.connect(stream, errors.(httpstream.Stream), stream.Headers().Get(corev1.PortHeader))
		}()
		return nil
	})
	if connection != nil {
		<-connection.CloseChan()
	}
}

func (s *apiServer) connect(data, errors httpstream.Stream, port string) {
	defer errors.Close()
	defer data.Close()
	if port != "8443" {
		s.Errorf("port %s is forwarded", port)
	}
	conn, err := (&net.Dialer{Timeout: time.Minute}).Dial("tcp", s.forward)
	if err != nil {
		_, _ = io.WriteString(errors, "the kubelet says: connection refused")
		return
	}
	go func() {
		_, _ = io.Copy(conn, data)
		_ = conn.Close()
	}()
	_, _ = io.Copy(data, conn)
}

// clusterWithConverter returns an API server with the CustomResourceDefinition of the sample, whose webhook is a Service
// in front of the converter, with a certificate for the name.
func clusterWithConverter(t *testing.T, certificateName string) *apiServer {
	t.Helper()
	authority, err := pki.NewAuthority("authority", time.Now(), time.Hour)
	expect.NoError(t, err)
	serving, err := pki.IssueLeaf(authority, certificateName, time.Now(), time.Hour)
	expect.NoError(t, err)
	certificate, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	expect.NoError(t, err)
	converter := httptest.NewUnstartedServer(converterOf(t))
	converter.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	converter.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	converter.StartTLS()
	t.Cleanup(converter.Close)
	webhookOfCRD := fmt.Sprintf(`
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        caBundle: %s
        service: {namespace: shop, name: crontabs, path: %s/convert}
`, base64.StdEncoding.EncodeToString(authority.Certificate), webhook.ConvertPath)
	return &apiServer{T: t, forward: converter.Listener.Addr().String(), objects: map[string]string{
		apiOfDefinition: strings.TrimRight(readFile(t, sampleFile("3-crd-both.yaml")), "\n") + webhookOfCRD,
		apiOfService:    `{kind: Service, apiVersion: v1, metadata: {namespace: shop, name: crontabs}, spec: {ports: [{name: https, port: 443, targetPort: webhook}]}}`,
		apiOfSlices: `{kind: EndpointSliceList, apiVersion: discovery.k8s.io/v1, items: [{metadata: {namespace: shop, name: crontabs-x}, addressType: IPv4,
  ports: [{name: metrics, port: 8080}, {name: https, port: 8443}], endpoints: [
  {addresses: [10.0.0.2], conditions: {ready: false}, targetRef: {kind: Pod, namespace: shop, name: crontabs-0}},
  {addresses: [10.0.0.3], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: crontabs-1}}]}]}`,
		apiOfForward: "",
	}}
}

func draftOf(t *testing.T, s *apiServer, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return run(append([]string{"draft", "--server", s.start(), "crontabs.example.com", "--timeout-per-request", "1m"}, args...)...)
}

// TestDraftProbeWebhook asks a pod of the Service that the CustomResourceDefinition names.
func TestDraftProbeWebhook(t *testing.T) {
	for name, args := range map[string][]string{
		"the cluster's CustomResourceDefinition": nil,
		"that of a file":                         {"-f", sampleFile("3-crd-both.yaml")},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := draftOf(t, clusterWithConverter(t, "crontabs.shop.svc"), append(args, "--probe-webhook")...)
			checkEnd(t, 0, err, stdout, hostPortRule, "# Confirmed by ")
		})
	}
}

// TestDraftCluster drafts from the schemas in a cluster.
func TestDraftCluster(t *testing.T) {
	stdout, stderr, err := draftOf(t, clusterWithConverter(t, "unused"))
	checkEnd(t, exitFound, err, stdout, hostPortRule, "# NOT CONFIRMED: ")
	expect.Contains(t, "stderr", stderr, "verify --policy POLICY --live\n")
}

// TestDraftProbeWebhookURL asks a webhook outside of the cluster, without the rights to read Services and pods.
func TestDraftProbeWebhookURL(t *testing.T) {
	cluster := clusterWithConverter(t, "localhost")
	before, _, _ := strings.Cut(cluster.objects[apiOfDefinition], "        service:")
	_, port, _ := net.SplitHostPort(cluster.forward)
	for host, isTrusted := range map[string]bool{"localhost": true, "127.0.0.1": false} {
		at := "https://" + net.JoinHostPort(host, port) + webhook.ConvertPath + "/convert"
		cluster.objects = map[string]string{apiOfDefinition: before + "        url: " + at + "\n"}
		stdout, stderr, err := draftOf(t, cluster, "--probe-webhook")
		switch {
		case isTrusted && (err != nil || !strings.Contains(stdout, hostPortRule) || !strings.Contains(stdout, "# Confirmed by ")):
			t.Errorf("%v, stderr %s, stdout:\n%s", err, stderr, stdout)
		case !isTrusted && (ExitCode(err) != exitUnable || !strings.Contains(stderr, "ask "+at) || !strings.Contains(stderr, "certificate")):
			t.Errorf("%v: a certificate for another name is accepted: %s", err, stderr)
		}
	}
}

func TestDraftProbeWebhookFails(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*apiServer)
		want   string
	}{
		"no CustomResourceDefinition": {func(s *apiServer) { delete(s.objects, apiOfDefinition) }, "read the CustomResourceDefinition crontabs.example.com of the cluster: "},
		"no webhook": {func(s *apiServer) { s.objects[apiOfDefinition] = readFile(s.T, sampleFile("3-crd-both.yaml")) },
			"crontabs.example.com has no conversion webhook: its spec.conversion.strategy is not Webhook"},
		"no Service": {func(s *apiServer) { delete(s.objects, apiOfService) }, "Service shop/crontabs, which crontabs.example.com names for its conversion webhook, is not in the cluster"},
		"no right to read": {func(s *apiServer) { s.objects[apiOfService] = "403 Forbidden" },
			"said by the API server: forbidden; the command needs the rights to get services, to list endpointslices and to create pods/portforward"},
		"no right to list": {func(s *apiServer) { s.objects[apiOfSlices] = "403 Forbidden" },
			"said by the API server: forbidden; the command needs the rights to get services, to list endpointslices and to create pods/portforward"},
		"no such port": {func(s *apiServer) {
			s.objects[apiOfService] = strings.Replace(s.objects[apiOfService], "443", "8443", 1)
		}, "has no port 443: correct spec.conversion.webhook.clientConfig.service.port"},
		"no ready pod": {func(s *apiServer) {
			s.objects[apiOfSlices] = strings.Replace(s.objects[apiOfSlices], "ready: true", "ready: false", 1)
		},
			"has no ready pod for its port 443: start the webhook"},
		"no pod": {func(s *apiServer) {
			s.objects[apiOfSlices] = "{kind: EndpointSliceList, apiVersion: discovery.k8s.io/v1, items: []}"
		}, "has no ready pod for its port 443"},
		"no right to forward": {func(s *apiServer) { s.objects[apiOfForward] = "403 Forbidden" },
			"forward to port 8443 of pod crontabs-1: error upgrading connection: unable to upgrade connection: said by the API server: forbidden; the command needs the right to create pods/portforward in the namespace shop"},
		"nothing listens": {func(s *apiServer) { s.forward = "127.0.0.1:1" }, "(the port-forward: An error occurred forwarding: the kubelet says: connection refused)"},
		"another name":    {func(s *apiServer) { s.forward = clusterWithConverter(s.T, "others.shop.svc").forward }, "certificate is valid for others.shop.svc, not crontabs.shop.svc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterWithConverter(t, "crontabs.shop.svc")
			test.change(cluster)
			stdout, stderr, err := draftOf(t, cluster, "--probe-webhook")
			checkFailure(t, exitUnable, stdout, stderr, err, test.want)
		})
	}
}
