//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const system = "conversion-system"

var (
	// cluster is the client of the tests, without a cache.
	cluster client.WithWatch
	// writes counts the writes of the manager.
	writes atomic.Int64
	// killed makes every write of the manager return an error after it succeeded, as if the
	// manager had been killed there.
	killed atomic.Bool
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
	testenv.Main(m, 0, testenv.Options{CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true}, prepare)
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
	if err := confine(ctx); err != nil {
		return nil, err
	}
	kubeconfig := managerConfig(direct)
	kubeconfig.Wrap(sent.watch)
	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme: cluster.Scheme(), Cache: CacheOptions(system), Client: ClientOptions(), MapperProvider: NewMapper,
		Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: newCountingClient,
	})
	if err != nil {
		return nil, err
	}
	username, err := Username(ctx, manager.GetClient())
	if err != nil {
		return nil, err
	}
	pods = &kubelet{client: cluster}
	prober := NewProber(time.Hour)
	prober.Probe, prober.Own = pods.probe, pods.own
	settings = observed.Settings{Namespace: system, Username: username, Image: "conversion-operator:test", PropagationDelay: 2 * time.Second,
		DependentsAccount: names.DependentsAccount}
	if err := errors.Join(createManagerPod(ctx), ReadManagerPod(ctx, cluster, managerPod, &settings)); err != nil {
		return nil, err
	}
	reconciler := &ConversionPolicyReconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder(names.ManagedBy),
		Settings: settings,
		Prober:   prober, Now: time.Now, Checks: fakeChecks(),
	}
	if err := reconciler.SetupWithManager(ctx, manager); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return ended, nil
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

// newCountingClient counts the writes of the manager's client.
func newCountingClient(kubeconfig *rest.Config, options client.Options) (client.Client, error) {
	direct, err := client.NewWithWatch(kubeconfig, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(direct, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return written(c.Create(ctx, object, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return written(c.Patch(ctx, object, patch, options...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return written(c.Apply(ctx, object, options...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return written(c.SubResource(name).Patch(ctx, object, patch, options...))
		},
	}), nil
}

func written(err error) error {
	writes.Add(1)
	if err == nil && killed.Load() {
		return errors.New("killed after a write")
	}
	return err
}

// kubelet simulates the pods of Deployments: it creates them from the template, ready, and adds
// them to the Service.
type kubelet struct {
	client client.Client
	// rulesets are those that pods have loaded, by server name.
	mu       sync.Mutex
	rulesets map[string][]string
	// refuse is the error of probes; nil for success.
	refuse atomic.Pointer[probe.Error]
	// hang is the name of the server whose pods do not answer; nil if all do.
	hang atomic.Pointer[string]
	// serves are the certificates that pods have loaded, by server name. Pods without an entry
	// pass every probe.
	serves sync.Map
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
	loaded := probe.Result{RulesetHashes: k.load(target.ServerName, target.RulesetHash)}
	if refused := k.refuse.Load(); refused != nil {
		return loaded, refused
	}
	if leaf, known := k.serves.Load(target.ServerName); known {
		trusted, err := pki.ParseBundle(target.CABundle)
		if err == nil {
			err = pki.CheckLeaf(leaf.(pki.KeyPair), trusted, target.ServerName, time.Now()) //nolint:forcetypeassert // nothing else is stored
		}
		if err != nil {
			return probe.Result{}, &probe.Error{Reason: probe.ReasonTLSVerificationFailed, Message: err.Error()}
		}
	}
	return loaded, nil
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

// mount makes a policy's pods load the mounted certificate.
func (k *kubelet) mount(t *testing.T, policy string) {
	t.Helper()
	secret := &corev1.Secret{}
	expect.NoError(t, k.client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.CertificateSecret(policy)}, secret))
	k.serves.Store(names.ServerName(policy, system), observed.KeyPair(secret))
}

// run starts the pods of a policy's Deployment after it was created.
func (k *kubelet) run(t *testing.T, policy string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.Eventually(t, "the Deployment is there", func() (bool, string) {
		err := k.client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(policy)}, deployment)
		return err == nil, fmt.Sprint(err)
	})
	old := &corev1.PodList{}
	expect.NoError(t, k.client.List(t.Context(), old, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)}))
	for i := range old.Items {
		expect.NoError(t, k.client.Delete(t.Context(), &old.Items[i], client.GracePeriodSeconds(0)))
	}
	for i := range *deployment.Spec.Replicas {
		testenv.RunPod(t, k.client, deployment, testenv.Pod{Name: fmt.Sprintf("%s-%d-%d", deployment.Name, deployment.Generation, i),
			IP: fmt.Sprintf("10.1.2.%d", i+1), Node: "node"})
	}
	testenv.Expose(t, k.client, client.ObjectKeyFromObject(deployment), map[string]string{names.InstanceLabel: deployment.Name}, "10.1.2.1", nil)
	testenv.RolledOut(t, k.client, deployment, *deployment.Spec.Replicas)
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

// create creates an object from a manifest.
func create[T client.Object](t *testing.T, manifest string, object T) T {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(manifest), object))
	expect.NoError(t, cluster.Create(t.Context(), object))
	return object
}
