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
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	system = "conversion-system"
	// operator is the user name of the manager.
	operator = "system:serviceaccount:" + system + ":conversion-operator"
	// atOnce is the number of parallel tests, which mostly wait.
	atOnce = 8
	// proofLifetime is short, so that pods are probed again during a test.
	proofLifetime = 2 * time.Second
	// failureWindow is short, so that a test sees its end.
	failureWindow = 5 * time.Second
)

var (
	// cluster is the client of users.
	cluster client.WithWatch
	// outside is an address of this machine that is not of a pod.
	outside string
	// storage is the etcd behind the API server.
	storage etcd.Client
	// server adds users to the API server.
	server *testenv.Server
	// manager is the running one.
	manager *process
)

// process is a manager whose requests a test can intercept.
type process struct {
	config *rest.Config
	// stop ends it; ended is closed afterwards.
	stop  context.CancelFunc
	ended <-chan error
}

func TestMain(m *testing.M) {
	if image := os.Getenv(imageVariable); image != "" {
		err := play(image)
		os.Exit(cmd.ExitCode(err))
	}
	ctrl.SetLogger(logr.Discard())
	testenv.Parallel(atOnce)
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
	}
	os.Exit(max(code, cmd.ExitCode(err)))
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	images, err := writeImages(dir)
	if err != nil {
		return 1, err
	}
	started, err := testenv.StartCluster(context.Background(), testenv.Options{
		Durable: true,
		CRDs:    []string{testenv.OperatorCRDs, "config/crd/conversionprobes.yaml"},
	}, images, []string{"a", "b"})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	server, cluster, storage = started.Server, started.Client, started.Etcd
	if err := prepare(); err != nil {
		return 1, err
	}
	code = m.Run()
	manager.stop()
	return code, <-manager.ended
}

func prepare() (err error) {
	if outside, err = testenv.OutsideAddress(); err != nil {
		return err
	}
	user, err := server.AddUser(envtest.User{Name: operator}, server.Kubeconfig)
	if err != nil {
		return err
	}
	if err := cluster.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return err
	}
	// Exactly the rights of the installation.
	if _, err := testenv.Install(context.Background(), cluster, "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml",
		"rbac/grants/role.yaml", "rbac/grants/role_binding.yaml"); err != nil {
		return err
	}
	manager, err = startManager(user.Config())
	return err
}

// startManager starts a manager whose requests pass the taps.
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
		Settings: observed.Settings{Namespace: system, Username: operator, Image: operatorImage, PropagationDelay: 2 * time.Second, ProofLifetime: proofLifetime, FailureWindow: failureWindow, SizeAdmission: true},
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

// restart replaces the manager. Tests that call it are not parallel.
func restart(t *testing.T) {
	t.Helper()
	manager.stop()
	expect.NoError(t, <-manager.ended)
	startNext(t)
}

// awaitRestart waits until the manager exits with an error, and replaces it, as a kubelet does.
func awaitRestart(t *testing.T, cause string) {
	t.Helper()
	expect.Eventually(t, "the manager exits: "+cause, func() (bool, string) {
		select {
		case err := <-manager.ended:
			if err == nil || !strings.Contains(err.Error(), cause) {
				t.Fatalf("the manager ended with %v", err)
			}
			return true, ""
		default:
			return false, "it runs"
		}
	})
	manager.stop()
	startNext(t)
}

func startNext(t *testing.T) {
	t.Helper()
	next, err := startManager(manager.config)
	expect.NoError(t, err)
	manager = next
}

// tapped is the manager's transport: writes of a group's objects pass the tap of a test.
type tapped struct{ next http.RoundTripper }

// tap handles a patch: it calls pass to send it to the API server, or makes a response.
type tap func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error)

// taps by group.
var taps sync.Map

// setTap intercepts the manager's patches of a group's objects and of its CRD, until the test ends.
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
