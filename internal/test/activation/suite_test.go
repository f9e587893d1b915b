//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	system = "conversion-system"
	// atOnce is how many tests run at once: they wait more than they work.
	atOnce = 8
	// proofLifetime is short, so that pods are asked again while a test waits.
	proofLifetime = 2 * time.Second
	// failureWindow is short, so that a test sees the end of it.
	failureWindow = 5 * time.Second
)

var (
	// cluster writes as users do.
	cluster client.WithWatch
	// outside is an address of this machine that an EndpointSlice may have.
	outside string
	// storage has what the API server stores.
	storage etcd.Client
	// server starts what has to act as a user.
	server *testenv.Server
	// manager is the one that runs.
	manager *process
)

// process is a manager, with what a test does to its requests.
type process struct {
	config *rest.Config
	// stop ends it, and ended tells that it has.
	stop  context.CancelFunc
	ended <-chan error
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, atOnce, testenv.Options{
		CRDs: []string{testenv.OperatorCRDs, "config/crd/conversionprobes.yaml"},
		// The API server calls the endpoints of a Service: nothing forwards its address.
		// A migration asks it at the address that it advertises.
		Arguments: map[string]string{"enable-aggregator-routing": "true", "bind-address": "0.0.0.0"},
	}, prepare)
}

func prepare(started *testenv.Server) (func() error, error) {
	if outside = outsideAddress(); outside == "" {
		return nil, errors.New("this machine has no IPv4 address but loopback: endpoints of a Service may not be at that")
	}
	server, cluster, storage = started, started.Client, started.Etcd
	user, err := server.AddUser(envtest.User{Name: "system:serviceaccount:" + system + ":conversion-operator"}, server.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := install(context.Background()); err != nil {
		return nil, err
	}
	manager, err = startManager(user.Config())
	return func() error {
		manager.stop()
		return <-manager.ended
	}, err
}

func outsideAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		if found, ok := address.(*net.IPNet); ok && found.IP.To4() != nil && found.IP.IsGlobalUnicast() {
			return found.IP.String()
		}
	}
	return ""
}

// install gives the manager the rights that it is installed with, and no others.
func install(ctx context.Context) error {
	if err := cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return err
	}
	for _, file := range []string{"role.yaml", "role_binding.yaml", "grants/role.yaml", "grants/role_binding.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", file))
		if err != nil {
			return err
		}
		if err := createAll(ctx, utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func createAll(ctx context.Context, documents io.Reader) error {
	buffer := make([]byte, 1<<16)
	for {
		n, err := documents.Read(buffer)
		if err != nil {
			return ignoreEOF(err)
		}
		kind := metav1.TypeMeta{}
		if err := yaml.Unmarshal(buffer[:n], &kind); err != nil || kind.Kind == "" {
			continue
		}
		object := map[string]client.Object{
			"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
			"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{},
		}[kind.Kind]
		if err := yaml.UnmarshalStrict(buffer[:n], object); err != nil {
			return err
		}
		if err := cluster.Create(ctx, object); err != nil {
			return err
		}
	}
}

// startManager starts a manager that reaches the API server through taps.
func startManager(kubeconfig *rest.Config) (*process, error) {
	config := rest.CopyConfig(kubeconfig)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tapped{next: next} })
	started, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.New(), Cache: controllers.CacheOptions(system), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one after the other has the name
	})
	if err != nil {
		return nil, err
	}
	reconciler := &controllers.ConversionPolicyReconciler{
		Client: started.GetClient(), Live: started.GetAPIReader(), Recorder: started.GetEventRecorder(names.ManagedBy),
		Settings: observed.Settings{Namespace: system, Image: "conversion-operator:test", PropagationDelay: 2 * time.Second, ProofLifetime: proofLifetime, FailureWindow: failureWindow, SizeAdmission: true},
		Prober:   controllers.NewProber(proofLifetime),
		Checks:   controllers.NewBackgroundChecks(config, started.GetClient(), started.GetAPIReader(), time.Now),
		Now:      time.Now,
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := reconciler.SetupWithManager(ctx, started); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- started.Start(ctx) }()
	return &process{config: kubeconfig, stop: cancel, ended: ended}, nil
}

// restart ends the manager, and starts another. A test that does so does not run
// beside others.
func restart(t *testing.T) {
	t.Helper()
	manager.stop()
	expect.NoError(t, <-manager.ended)
	next, err := startManager(manager.config)
	expect.NoError(t, err)
	manager = next
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// tapped is how the manager reaches the API server: writes of a group's objects pass
// the tap that a test has set for it.
type tapped struct{ next http.RoundTripper }

// tap answers a patch in the API server's place, or by passing it on.
type tap func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error)

// taps are those of groups, by their names.
var taps sync.Map

// setTap lets a function see the manager's patches of objects of a group, and of its
// CustomResourceDefinition, until the test ends.
func setTap(t *testing.T, group string, f tap) {
	t.Helper()
	taps.Store(group, f)
	t.Cleanup(func() { taps.Delete(group) })
}

func (c *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return c.next.RoundTrip(r) }
	if r.Method != http.MethodPatch {
		return pass()
	}
	var found tap
	taps.Range(func(group, set any) bool {
		if strings.Contains(r.URL.Path, "/apis/"+group.(string)+"/") || strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/crontabs."+group.(string)) {
			found = set.(tap)
		}
		return found == nil
	})
	if found == nil {
		return pass()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return found(r, string(body), pass)
}
