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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const system = "conversion-system"

// cluster is a real API server with the operator and cert-manager.
type cluster struct {
	*testing.T
	client.Client
	ctx context.Context
}

func start(t *testing.T) *cluster {
	t.Helper()
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	c := &cluster{T: t, ctx: t.Context()}
	dir, err := exec.CommandContext(c.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	expect.NoError(c.T, err)
	server := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs, filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds")}})
	c.Client = server.Client
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	file := server.KubeconfigFile(t, envtest.User{Name: "cert-manager", Groups: []string{"system:masters"}})
	c.run("cert-manager", func(ctx context.Context) error { return Run(ctx, file, system) })

	manager, err := ctrl.NewManager(server.Kubeconfig, ctrl.Options{Scheme: scheme.New(), Cache: controllers.CacheOptions(system),
		Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}}) // each test has a manager
	expect.NoError(c.T, err)
	prober := controllers.NewProber(time.Minute)
	prober.Probe = func(ctx context.Context, _ probe.Target) (probe.Result, error) {
		hashes, err := c.storedRulesets(ctx)
		return probe.Result{RulesetHashes: hashes}, err
	}
	reconciler := &controllers.ConversionPolicyReconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder(names.ManagedBy),
		Settings: observed.Settings{Namespace: system, Image: "conversion-operator:test", PropagationDelay: 2 * time.Second},
		Prober:   prober, Now: time.Now,
		Checks: controllers.NewBackgroundChecks(server.Kubeconfig, manager.GetClient(), manager.GetAPIReader(), time.Now),
	}
	expect.NoError(c.T, reconciler.SetupWithManager(c.ctx, manager))
	c.run("the operator", manager.Start)
	return c
}

// run runs a function until the end of the test, before the API server stops.
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

// storedRulesets has the hashes of all stored rulesets: pods load them at once.
func (c *cluster) storedRulesets(ctx context.Context) (hashes []string, err error) {
	list := &corev1.ConfigMapList{}
	err = c.List(ctx, list, client.InNamespace(system))
	for _, configMap := range list.Items {
		for key := range configMap.BinaryData {
			if hash, is := conversion.StoredHash(key); is {
				hashes = append(hashes, hash)
			}
		}
	}
	return hashes, err
}

// runPods acts as kubelet: it starts ready pods of the Deployment of that name, and adds them to the
// Service.
func (c *cluster) runPods(name string) {
	c.Helper()
	deployment := &appsv1.Deployment{}
	expect.Eventually(c.T, "the Deployment is there", func() (bool, string) {
		err := c.Get(c.ctx, client.ObjectKey{Namespace: system, Name: name}, deployment)
		return err == nil, c.certificates().Message
	})
	replicas := *deployment.Spec.Replicas
	for i := range replicas {
		testenv.RunPod(c.T, c.Client, deployment, testenv.Pod{Name: deployment.Name + "-" + string('a'+i), IP: "10.1.2.3", Node: "node"})
	}
	testenv.Expose(c.T, c.Client, client.ObjectKeyFromObject(deployment), map[string]string{names.InstanceLabel: deployment.Name}, "10.1.2.3", nil)
	testenv.RolledOut(c.T, c.Client, deployment, replicas)
}

// createFrom creates the object in a file.
func (c *cluster) createFrom(file string, into client.Object) {
	c.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(c.T, err)
	expect.NoError(c.T, yaml.UnmarshalStrict(text, into))
	c.create(into)
}

func (c *cluster) crd() *apiextensionsv1.CustomResourceDefinition {
	c.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(c.T, c.Get(c.ctx, client.ObjectKey{Name: name}, crd))
	return crd
}

func (c *cluster) secret(name string) *corev1.Secret {
	c.Helper()
	secret := &corev1.Secret{}
	expect.NoError(c.T, c.Get(c.ctx, client.ObjectKey{Namespace: system, Name: name}, secret))
	return secret
}

func (c *cluster) create(object client.Object) {
	c.Helper()
	expect.NoError(c.T, c.Create(c.ctx, object))
}
