//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const system = "conversion-system"

var (
	// cluster is the client of the tests, without a cache.
	cluster client.WithWatch
	// pods simulates the kubelet.
	pods *kubelet
	// direct is the configuration of the API server, and storage the client of etcd.
	direct  *rest.Config
	storage etcd.Client
	// settings are those of the manager.
	settings observed.Settings
	// logged records all logs of the manager.
	logged = &logRecorder{to: os.Stderr}
	// kubectl runs kubectl as an administrator.
	kubectl func(args ...string) (stdout, stderr io.Reader, err error)
)

// TestMain starts a kube-apiserver, etcd, and the controller. Nothing runs pods: kubelet below
// sets their status and answers their probes.
func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(logged), zap.Level(zapcore.DebugLevel), zap.StacktraceLevel(zapcore.PanicLevel)))
	testenv.Main(m, testenv.Options{CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true}, prepare)
}

func prepare(server *testenv.Server) (func() error, error) {
	direct, cluster, storage = server.Kubeconfig, server.Client, server.Etcd
	administrator, err := server.AddUser(envtest.User{Name: "administrator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	command, err := administrator.Kubectl()
	if err != nil {
		return nil, err
	}
	kubectl = command.Run
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := startManager(ctx)
	return func() error {
		cancel()
		return <-ended
	}, err
}

func startManager(ctx context.Context) (<-chan error, error) {
	if err := cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}); err != nil {
		return nil, err
	}
	// The policies that confine the manager, with the account that they match: all tests run under them.
	if _, err := testenv.Install(ctx, cluster, "rbac/service_account.yaml", "rbac/confinement.yaml"); err != nil {
		return nil, err
	}
	kubeconfig := managerConfig(direct)
	kubeconfig.Wrap(sent.watch)
	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme: cluster.Scheme(), Cache: CacheOptions(system), Client: ClientOptions(), MapperProvider: NewMapper,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	username, err := Username(ctx, manager.GetClient())
	if err != nil {
		return nil, err
	}
	pods = &kubelet{client: cluster}
	settings = observed.Settings{Namespace: system, Username: username, Image: "conversion-operator:test", PropagationDelay: 2 * time.Second,
		DependentsAccount: names.DependentsAccount}
	if err := errors.Join(createManagerPod(ctx), ReadManagerPod(ctx, cluster, managerPod, &settings)); err != nil {
		return nil, err
	}
	reconciler := withFakes(manager.GetClient(), manager.GetEventRecorder(names.ManagedBy))
	reconciler.Live = manager.GetAPIReader()
	if err := reconciler.SetupWithManager(ctx, manager); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return ended, nil
}

// withFakes is a manager whose pods are not real.
func withFakes(c client.Client, recorder events.EventRecorder) *ConversionPolicyReconciler {
	prober := NewProber(time.Hour)
	prober.Probe, prober.Own = pods.probe, pods.own
	return &ConversionPolicyReconciler{
		Client: c, Live: c, Recorder: recorder, Settings: settings, Prober: prober, Now: time.Now, Checks: fakeChecks()}
}

// newReconciler is another manager. It reconciles on request.
func newReconciler(t *testing.T) *ConversionPolicyReconciler {
	t.Helper()
	r := withFakes(cluster, &recorder{})
	r.start(t.Context())
	return r
}

// managerConfig impersonates the manager, which admission policies match by name. RBAC allows it
// everything.
func managerConfig(kubeconfig *rest.Config) *rest.Config {
	kubeconfig = rest.CopyConfig(kubeconfig)
	kubeconfig.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + system + ":conversion-operator", Groups: []string{"system:masters"}}
	return kubeconfig
}

// fakeChecks returns checks that succeed if they would need a running converter.
func fakeChecks() *BackgroundChecks {
	does := NewBackgroundChecks(direct, cluster, cluster, time.Now)
	return &BackgroundChecks{
		TakeSamples:    func(context.Context, step.TakeSamples) observed.BackgroundCheck { return observed.BackgroundCheck{} },
		ProbeAPIServer: func(context.Context, step.ProbeAPIServer) observed.BackgroundCheck { return observed.BackgroundCheck{} },
		CountWrites:    func(context.Context, step.CountWrites) observed.BackgroundCheck { return observed.BackgroundCheck{} },
		ReadRequests:   does.ReadRequests, FindDependents: does.FindDependents, ClearManagedFields: does.ClearManagedFields,
		Now: time.Now,
	}
}

// kubelet stands for pods, because these tests are about what the manager writes: it creates the pods of
// a Deployment, ready, and answers their probes. In internal/test/activation, nodes run real ones.
type kubelet struct {
	client client.Client
	// rulesets are those that pods have loaded, by server name.
	mu       sync.Mutex
	rulesets map[string][]string
	// hang is the name of the server whose pods do not answer; nil if all do.
	hang atomic.Pointer[string]
	// refuseOwn are the errors of probes of converters that users run, by server name.
	refuseOwn sync.Map
}

func (k *kubelet) own(_ context.Context, target probe.OwnTarget) ([]string, error) {
	if refused, ok := k.refuseOwn.Load(target.ServerName); ok {
		return nil, refused.(error)
	}
	return []string{"it is a fake"}, nil
}

func (k *kubelet) probe(ctx context.Context, target probe.Target) (probe.Result, error) {
	if hangs := k.hang.Load(); hangs != nil && *hangs == target.ServerName {
		<-ctx.Done()
		return probe.Result{}, &probe.Error{Reason: probe.ReasonTimeout, Message: "no answer"}
	}
	return probe.Result{RulesetHashes: k.load(target.ServerName, target.RulesetHash)}, nil
}

// load makes pods load a ruleset, and returns all that they have.
func (k *kubelet) load(server, hash string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rulesets == nil {
		k.rulesets = map[string][]string{}
	}
	if !slices.Contains(k.rulesets[server], hash) {
		k.rulesets[server] = append(k.rulesets[server], hash)
	}
	return slices.Clone(k.rulesets[server])
}

// run replaces the pods of a policy's Deployment, once it was created.
func (k *kubelet) run(t *testing.T, policy string) {
	t.Helper()
	testenv.RunPods(t, k.client, client.ObjectKey{Namespace: system, Name: names.Child(policy)})
}

// reconcileNow reconciles a policy without a manager, and again after each first answer of a pod.
func reconcileNow(ctx context.Context, r *ConversionPolicyReconciler, policy string) error {
	for {
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: policy}})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > firstProbeWait {
			return err
		}
		select {
		case <-r.background.woken:
		case <-r.background.checked:
		case <-time.After(result.RequeueAfter):
		}
	}
}

// dropFinalizers is the patch by which the garbage collector ends a foreground deletion.
var dropFinalizers = client.RawPatch(mergePatch, []byte(`{"metadata":{"finalizers":null}}`))

// install creates the objects of files of config, and returns a function that deletes them.
func install(t *testing.T, files ...string) (uninstall func()) {
	t.Helper()
	remove, err := testenv.Install(t.Context(), cluster, files...)
	expect.NoError(t, err)
	return func() { expect.NoError(t, remove(t.Context())) }
}

// create creates an object from a manifest.
func create[T client.Object](t *testing.T, manifest string, object T) T {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(manifest), object))
	expect.NoError(t, cluster.Create(t.Context(), object))
	return object
}
