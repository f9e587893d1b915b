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
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const system, image = "conversion-system", "conversion-operator:test"

// cluster is a real API server with the operator, whose pods are processes, and cert-manager.
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
	programs := t.TempDir()
	output, err := exec.CommandContext(c.ctx, "go", "build", "-C", "../../..", "-o", programs+"/", ".", "./internal/webhook/converter").CombinedOutput()
	if err != nil {
		t.Fatalf("build the operator and the converter: %v: %s", err, output)
	}
	server, err := testenv.StartCluster(c.ctx, testenv.Options{CRDs: []string{testenv.OperatorCRDs, "config/crd/conversionprobes.yaml",
		filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds")}}, map[string]string{image: filepath.Join(programs, "conversion-operator")}, []string{"a"})
	expect.NoError(c.T, err)
	c.Cleanup(func() { expect.NoError(c.T, server.Stop()) })
	c.Client = server.Client
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	_, err = testenv.Install(c.ctx, c.Client, "rbac/service_account.yaml")
	expect.NoError(c.T, err)
	file := server.KubeconfigFile(t, envtest.User{Name: "cert-manager", Groups: []string{"system:masters"}})
	c.run("cert-manager", func(ctx context.Context) error { return Run(ctx, file, system) })

	manager, err := ctrl.NewManager(server.Kubeconfig, ctrl.Options{Scheme: scheme.New(), Cache: controllers.CacheOptions(system),
		Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}}) // each test has a manager
	expect.NoError(c.T, err)
	reconciler := &controllers.ConversionPolicyReconciler{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Recorder: manager.GetEventRecorder(names.ManagedBy),
		Settings: observed.Settings{Namespace: system, Image: image, PropagationDelay: 2 * time.Second},
		Prober:   controllers.NewProber(time.Minute), Now: time.Now,
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
