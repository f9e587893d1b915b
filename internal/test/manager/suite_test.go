//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
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
	// operator is the user name of the manager, and podName the name of its pod, which no node runs.
	operator = "system:serviceaccount:" + system + ":conversion-operator"
	podName  = "manager"
	// atOnce is the number of parallel tests, which mostly wait.
	atOnce = 8
	// proofLifetime is short, so that pods are probed again during a test.
	proofLifetime = 2 * time.Second
	// failureWindow is short, so that a test sees its end.
	failureWindow = 5 * time.Second
)

var (
	// cluster is the client of users, and kubectl runs that command as an administrator.
	cluster client.WithWatch
	kubectl func(args ...string) (stdout, stderr io.Reader, err error)
	// outside is an address of this machine that is not of a pod.
	outside string
	// storage is the etcd behind the API server.
	storage etcd.Client
	// server adds users to the API server.
	server *testenv.Server
	// manager is the running one.
	manager *process
	// logged has the logs of all managers.
	logged logs
	// ahead is how far the manager's clock is ahead, in nanoseconds.
	ahead atomic.Int64
	// withdrawGrants takes the manager the right to grant rights.
	withdrawGrants func(context.Context) error
)

// process is a manager whose requests a test can intercept.
type process struct {
	config *rest.Config
	// settings are its own.
	settings observed.Settings
	// stop ends it; ended is closed afterwards.
	stop  context.CancelFunc
	ended <-chan error
}

func TestMain(m *testing.M) {
	if image := os.Getenv(imageVariable); image != "" {
		err := play(image)
		os.Exit(cmd.ExitCode(err))
	}
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(&logged), zap.Level(zapcore.DebugLevel), zap.StacktraceLevel(zapcore.PanicLevel)))
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
		Durable:           true,
		StorageMigrations: true,
		CRDs:              []string{testenv.OperatorCRDs, "config/crd/conversionprobes.yaml"},
		Arguments:         map[string]string{"request-timeout": requestTimeout.String()},
	}, images, []string{"a", "b"}, "--controllers=-storage-version-migrator-controller") // a test acts as this
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
	ctx := context.Background()
	if outside, err = testenv.OutsideAddress(); err != nil {
		return err
	}
	user, err := server.AddUser(envtest.User{Name: operator}, server.Kubeconfig)
	if err != nil {
		return err
	}
	administrator, err := server.AddUser(envtest.User{Name: "administrator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	command, err := administrator.Kubectl()
	if err != nil {
		return err
	}
	kubectl = command.Run
	if err := cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return err
	}
	// Exactly the rights of the installation, and what confines them.
	if _, err := testenv.Install(ctx, cluster, "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml",
		"rbac/leader_election.yaml", "rbac/confinement.yaml"); err != nil {
		return err
	}
	if withdrawGrants, err = testenv.Install(ctx, cluster, grantFiles...); err != nil {
		return err
	}
	if err := createManagerPod(ctx); err != nil {
		return err
	}
	// API servers learn of the rights with a delay.
	return retry.OnError(wait.Backoff{Steps: 100, Duration: 100 * time.Millisecond}, apierrors.IsForbidden, func() error {
		manager, err = startManager(ctx, user.Config())
		return err
	})
}

// grantFiles let the manager grant rights.
var grantFiles = []string{"rbac/grants/role.yaml", "rbac/grants/role_binding.yaml"}

// startManager starts a manager whose requests pass the taps.
func startManager(ctx context.Context, kubeconfig *rest.Config) (*process, error) {
	started, err := newManager(kubeconfig, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	settings, err := settingsOf(ctx, started)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if _, err := setUp(ctx, started, settings); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- started.Start(ctx) }()
	return &process{config: kubeconfig, settings: settings, stop: cancel, ended: ended}, nil
}

func newManager(kubeconfig *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	config := rest.CopyConfig(kubeconfig)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tapped{next: next} })
	options.Scheme, options.Cache, options.Client, options.MapperProvider = scheme.New(), controllers.CacheOptions(system), controllers.ClientOptions(), controllers.NewMapper
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = ctrlconfig.Controller{SkipNameValidation: new(true)} // one after the other has the name
	return ctrl.NewManager(config, options)
}

func settingsOf(ctx context.Context, started ctrl.Manager) (settings observed.Settings, err error) {
	settings = observed.Settings{Namespace: system, Image: operatorImage, DependentsAccount: names.DependentsAccount,
		PropagationDelay: 2 * time.Second, ProofLifetime: proofLifetime, FailureWindow: failureWindow, SizeAdmission: true}
	if settings.Username, err = controllers.Username(ctx, started.GetClient()); err != nil {
		return settings, err
	}
	return settings, controllers.ReadManagerPod(ctx, started.GetAPIReader(), podName, &settings)
}

func setUp(ctx context.Context, started ctrl.Manager, settings observed.Settings) (*controllers.ConversionPolicyReconciler, error) {
	reconciler := &controllers.ConversionPolicyReconciler{
		Client: started.GetClient(), Live: started.GetAPIReader(), Recorder: started.GetEventRecorder(names.ManagedBy), Settings: settings,
		Prober:     controllers.NewProber(proofLifetime),
		Checks:     controllers.NewBackgroundChecks(started.GetConfig(), started.GetClient(), started.GetAPIReader(), time.Now),
		Authorizer: controllers.NewAuthorizer(started.GetClient(), time.Now),
		Now:        func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}
	return reconciler, reconciler.SetupWithManager(ctx, started)
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
	next, err := startManager(context.Background(), manager.config) //nolint:usetesting // it outlives the test
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
	sent.add(r)
	pass := func() (*http.Response, error) { return c.next.RoundTrip(r) }
	if r.Method != http.MethodPatch {
		return pass()
	}
	var found tap
	taps.Range(func(group, set any) bool {
		if strings.Contains(r.URL.Path, "/apis/"+group.(string)+"/") || strings.Contains(r.URL.Path+"/", "/customresourcedefinitions/crontabs."+group.(string)+"/") {
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

// requests are those of the managers, from any of their clients: methods and paths.
type requests struct {
	mu  sync.Mutex
	all []string
}

var sent requests

func (r *requests) add(request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, request.Method+" "+request.URL.Path)
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// since returns how often the CustomResourceDefinition of a policy was read since an index, and the writes
// whose path names the policy or one of its children. Each reconciliation begins with such a read.
func (r *requests) since(index int, policy string) (reads int, writes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, request := range r.all[index:] {
		switch reading := strings.HasPrefix(request, http.MethodGet+" "); {
		case reading && strings.HasSuffix(request, "/customresourcedefinitions/"+policy):
			reads++
		case !reading && (strings.Contains(request, policy) || strings.Contains(request, names.Child(policy))):
			writes = append(writes, request)
		}
	}
	return reads, writes
}

// logs records what is written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// look causes a reconciliation of a policy without a relevant change, and waits until it has begun.
func look(t *testing.T, policy string) {
	t.Helper()
	lookAfter(t, policy, func(n int) {
		patch(t, getPolicy(t, policy), fmt.Sprintf(`{"metadata":{"annotations":{"looked":"%d"}}}`, n))
	})
}

// lookAfter waits until a change has caused a reconciliation of a policy. It calls change with another number
// each time.
func lookAfter(t *testing.T, policy string, change func(n int)) {
	t.Helper()
	before := sent.count()
	change(before)
	expect.Eventually(t, "the manager looks at "+policy, func() (bool, string) {
		reads, _ := sent.since(before, policy)
		return reads > 0, "it does not"
	})
}

// checkIdle waits until reconciliations of a policy write nothing.
func checkIdle(t *testing.T, policy string) {
	t.Helper()
	checkNoWrites(t, policy, func() { look(t, policy) })
}

// checkNoWrites waits until what causes reconciliations causes no writes about a policy. If the test fails, it logs
// what the last writes changed in the status.
func checkNoWrites(t *testing.T, policy string, look func()) {
	t.Helper()
	var was, is v1alpha1.ConversionPolicyStatus
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last writes changed the status (-before +after):\n%s", cmp.Diff(was, is))
		}
	})
	expect.Eventually(t, policy+" is at rest", func() (bool, string) {
		before := sent.count()
		for range 3 {
			look()
			was, is = is, statusOf(t, policy)
		}
		_, writes := sent.since(before, policy)
		return len(writes) == 0, fmt.Sprint(writes)
	})
}

// statusOf returns the status of a policy, which may be gone.
func statusOf(t *testing.T, name string) v1alpha1.ConversionPolicyStatus {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, client.IgnoreNotFound(cluster.Get(t.Context(), client.ObjectKey{Name: name}, policy)))
	return policy.Status
}

// as returns the client of a user with the rights of RBAC only.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Kubeconfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	theirs, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	return theirs
}

// install creates the objects of files of config, and returns a function that deletes them.
func install(t *testing.T, files ...string) (uninstall func()) {
	t.Helper()
	remove, err := testenv.Install(t.Context(), cluster, files...)
	expect.NoError(t, err)
	return func() { expect.NoError(t, remove(context.WithoutCancel(t.Context()))) }
}
