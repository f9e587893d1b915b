// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/scheme"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const system = "conversion-system"

// cluster is a real API server on which the operator and cert-manager run.
type cluster struct {
	*testing.T
	client.Client
	ctx context.Context
}

func start(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make integration")
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	c := &cluster{T: t, ctx: t.Context()}
	dir, err := exec.CommandContext(c.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	c.must(err)
	environment := &envtest.Environment{ErrorIfCRDPathMissing: true, CRDDirectoryPaths: []string{
		filepath.Join("..", "..", "..", "config", "crd", "bases"),
		filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds"),
	}}
	kubeconfig, err := environment.Start()
	c.must(err)
	t.Cleanup(func() { _ = environment.Stop() })
	kubeconfig.QPS = -1

	c.Client, err = client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	c.must(err)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})

	file := filepath.Join(t.TempDir(), "kubeconfig")
	user, err := environment.AddUser(envtest.User{Name: "cert-manager", Groups: []string{"system:masters"}}, nil)
	c.must(err)
	text, err := user.KubeConfig()
	c.must(err)
	c.must(os.WriteFile(file, text, 0o600))
	c.run("cert-manager", func(ctx context.Context) error { return Run(ctx, file, system) })

	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{Scheme: scheme.New(), Cache: controllers.CacheOptions(system),
		Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"}})
	c.must(err)
	prober := controllers.NewProber(time.Minute)
	prober.Probe = func(_ context.Context, target probe.Target) (probe.Result, error) {
		return probe.Result{PlanHashes: []string{target.PlanHash}}, nil
	}
	reconciler := &controllers.ConversionPolicyReconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder(plan.ManagedBy),
		Settings: plan.Settings{Namespace: system, Image: "conversion-operator:test", Settle: 2 * time.Second},
		Prober:   prober, Now: time.Now,
		Checks: controllers.NewBackgroundChecks(kubeconfig, manager.GetClient(), manager.GetAPIReader(), time.Now),
	}
	c.must(reconciler.SetupWithManager(c.ctx, manager))
	c.run("the operator", manager.Start)
	return c
}

// run runs something until the test is over, and the API server not yet.
func (c *cluster) run(what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	c.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Errorf("%s: %v", what, err)
		}
	})
}

// runPods plays the kubelet: it starts the pods of the policy's Deployment, ready
// at once, and puts them behind the Service.
func (c *cluster) runPods() {
	c.Helper()
	deployment := &appsv1.Deployment{}
	c.eventually("the Deployment is there", func() (bool, string) {
		err := c.Get(c.ctx, client.ObjectKey{Namespace: system, Name: plan.ChildName(name)}, deployment)
		return err == nil, c.condition(v1alpha1.CertificatesReadyCondition).Message
	})
	replicas := *deployment.Spec.Replicas
	for i := range replicas {
		pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.Namespace, pod.Name = system, deployment.Name+"-"+string('a'+i)
		pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "node", "", ""
		c.create(pod)
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		c.must(c.Status().Update(c.ctx, pod))
	}
	c.create(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: deployment.Name, Labels: map[string]string{
			discoveryv1.LabelServiceName: deployment.Name, plan.InstanceLabel: deployment.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
	})
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas}
	c.must(c.Status().Update(c.ctx, deployment))
}

func crd(name string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(`
metadata: {name: `+name+`}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {hostPort: {type: string}}}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: string}}}}}`, crd)
	return crd
}

func policy(name string) *v1alpha1.ConversionPolicy {
	policy := &v1alpha1.ConversionPolicy{}
	read(`
metadata: {name: `+name+`}
spec:
  certificates: {certManager: {issuerRef: {name: company}}}
  migration: {mode: OnTrigger}
  verification: {samples: 0, apiServerProbe: false} # nothing runs pods here
  converter:
    declarative:
      hub: v1
      spokes: [{version: v1beta1, rules: [{format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}}]}]`, policy)
	return policy
}

// read reads a manifest of this file.
func read(manifest string, into client.Object) {
	if err := yaml.UnmarshalStrict([]byte(manifest), into); err != nil {
		panic(err)
	}
}

func (c *cluster) crd() *apiextensionsv1.CustomResourceDefinition {
	c.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	c.must(c.Get(c.ctx, client.ObjectKey{Name: name}, crd))
	return crd
}

func (c *cluster) secret(name string) *corev1.Secret {
	c.Helper()
	secret := &corev1.Secret{}
	c.must(c.Get(c.ctx, client.ObjectKey{Namespace: system, Name: name}, secret))
	return secret
}

func (c *cluster) create(object client.Object) {
	c.Helper()
	c.must(c.Create(c.ctx, object))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// eventually looks until it is so, and fails with what it last saw.
func (c *cluster) eventually(what string, so func() (bool, string)) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		done, seen := so()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			c.Fatalf("waited in vain: %s; last seen: %s", what, seen)
		case <-ticker.C:
		}
	}
}
