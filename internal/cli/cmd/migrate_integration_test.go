// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// migrateEnv is an API server, and the file with its encryption keys.
type migrateEnv struct {
	*testenv.Server
	kubeconfig string
	encryption string
}

// TestMigrate runs the command as users do, without the manager. Its parts wait side by side.
func TestMigrate(t *testing.T) {
	encryption := filepath.Join(t.TempDir(), "encryption.yaml")
	writeEncryption(t, encryption, "identity: {}")
	server := testenv.For(t, testenv.Options{Durable: true, CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true,
		Arguments: map[string]string{"encryption-provider-config": encryption}})
	e := &migrateEnv{server, server.KubeconfigFile(t), encryption}
	t.Run("a dry run and a migration", e.testWhole)
	t.Run("refused", e.testRefused)
	t.Run("side by side", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"interrupted, with a ConfigMap": func(t *testing.T) { e.testInterrupted(t, "paused") },
			"interrupted, with a file": func(t *testing.T) {
				e.testInterrupted(t, "filed", "--record="+filepath.Join(t.TempDir(), "record.json"))
			},
			"a planted record":                 e.testPlanted,
			"a lost connection":                e.testLostConnection,
			"two at once":                      e.testTwo,
			"with the printed Roles alone":     e.testRole,
			"objects that fail":                e.testFailed,
			"a converter that does not answer": e.testUnanswered,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("everything, after a change of keys", e.testEncryption)
}

func writeEncryption(t *testing.T, file string, providers ...string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for _, provider := range providers {
		text += "  - " + provider + "\n"
	}
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// migrate runs the command, with a short delay.
func (e *migrateEnv) migrate(args ...string) (stdout, stderr string, err error) {
	return e.migrateIn(context.Background(), args...)
}

func (e *migrateEnv) migrateIn(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	args = append([]string{"migrate", "--kubeconfig", e.kubeconfig, "--propagation-delay=2s", "--pace=Fast"}, args...)
	return runIn(ctx, strings.NewReader(""), args...)
}

// results runs the command, expects the exit code, and returns the results.
func (e *migrateEnv) results(t *testing.T, code int, args ...string) migrateReport {
	t.Helper()
	stdout, stderr, err := e.migrate(append(args, "-o=json")...)
	if ExitCode(err) != code {
		t.Fatalf("%v: exit code %d, want %d; stdout:\n%s\nstderr:\n%s", args, ExitCode(err), code, stdout, stderr)
	}
	var report migrateReport
	expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
	return report
}

func (e *migrateEnv) fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if stdout, stderr, err := e.migrate(args...); ExitCode(err) != code || !strings.Contains(stdout+stderr, want) {
		t.Errorf("%v: exit code %d, want %d; the output lacks %q:\n%s%s", args, ExitCode(err), code, want, stdout, stderr)
	}
}

// define creates a definition with objects at v1beta1, of which every second one has a host, and changes its
// storage version to v1.
func (e *migrateEnv) define(t *testing.T, plural string, objects int, changes ...func(*apiextensionsv1.CustomResourceDefinition)) *migrationtest.Resource {
	t.Helper()
	r := migrationtest.New(t, e.Server, plural, objects, func(i int, object *unstructured.Unstructured) {
		if i%2 == 0 {
			object.Object["spec"] = map[string]any{"host": "a"}
		}
	})
	r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		migrationtest.StoreV1(crd)
		for _, change := range changes {
			change(crd)
		}
	})
	r.WantStored(t, map[string]int{"v1beta1": objects})
	return r
}

func wantStoredVersions(t *testing.T, r *migrationtest.Resource, want ...string) {
	t.Helper()
	expect.Equal(t, "status.storedVersions", want, r.Definition(t).Status.StoredVersions)
}

// wantMigrated expects all objects, and storedVersions, to be at v1.
func wantMigrated(t *testing.T, r *migrationtest.Resource) {
	t.Helper()
	r.WantStored(t, map[string]int{"v1": r.Objects})
	wantStoredVersions(t, r, "v1")
}

// rewriting waits until some objects are rewritten.
func rewriting(t *testing.T, r *migrationtest.Resource) {
	t.Helper()
	expect.Eventually(t, "some objects are rewritten", func() (bool, string) {
		versions := r.Stored(t)
		return versions["v1"] > 10, fmt.Sprint(versions)
	})
}

// everything is all of etcd but what API servers write by themselves.
func (e *migrateEnv) everything(t *testing.T) map[string]string {
	t.Helper()
	entries, _, err := e.Etcd.List(t.Context(), "/registry/")
	expect.NoError(t, err)
	all := map[string]string{}
	for _, entry := range entries {
		if key := string(entry.Key); !strings.HasPrefix(key, "/registry/leases/") && !strings.HasPrefix(key, "/registry/masterleases/") && !strings.HasPrefix(key, "/registry/peerserverleases/") {
			all[key] = string(entry.Value)
		}
	}
	return all
}

func (e *migrateEnv) testWhole(t *testing.T) {
	const objects = 200
	r := e.define(t, "wholes", objects)
	name := r.CRD.Name

	before := e.everything(t)
	stdout, _, err := e.migrate(name, "--dry-run", "-o=json")
	expect.NoError(t, err)
	var forecast forecastReport
	expect.NoError(t, json.Unmarshal([]byte(stdout), &forecast))
	want := []standalone.Forecast{{Resource: name, StorageVersion: "v1", StoredVersions: []string{"v1beta1", "v1"}, Objects: objects,
		Prunes: []string{"v1beta1"}, Record: "ConfigMap conversion-migrations/kubectl-conversion-migrate." + name}}
	want[0].Tried = 20
	expect.Equal(t, "forecast", want, forecast.Forecasts)
	expect.Equal(t, "what is stored, after a dry run", before, e.everything(t))

	e.fails(t, 0, name+": rewriting", name, "--prune=false")
	r.WantStored(t, map[string]int{"v1": objects})
	wantStoredVersions(t, r, "v1beta1", "v1")

	result := e.results(t, 0, name).Results[0]
	wantStoredVersions(t, r, "v1")
	if result.State != standalone.Complete || result.Current != objects || result.Rewritten != 0 || result.Barrier != contract.BarrierAllServers ||
		!slices.Equal(result.Pruned, []string{"v1beta1"}) || result.Verified == 0 {
		t.Errorf("result is %+v", result)
	}
}

func (e *migrateEnv) testInterrupted(t *testing.T, plural string, args ...string) {
	r := e.define(t, plural, 150)
	args = append([]string{r.CRD.Name, "-o=json"}, args...)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stdout, stderr, err = e.migrateIn(ctx, append(args, "--max-writes-per-second=20")...)
	}()
	rewriting(t, r)
	interrupt()
	<-ended
	checkEnd(t, 1, err, stderr, "run the same command again")
	var first migrateReport
	expect.NoError(t, json.Unmarshal([]byte(stdout), &first))
	if got := first.Results[0]; got.State != standalone.Interrupted || got.Rewritten == 0 || got.Rewritten == int64(r.Objects) {
		t.Errorf("the first run is %+v", got)
	}
	if left := r.Stored(t)["v1beta1"]; left == 0 {
		t.Fatal("the run was not interrupted")
	}
	wantStoredVersions(t, r, "v1beta1", "v1")
	second := e.results(t, 0, args...).Results[0]
	if second.State != standalone.Complete || second.Total != int64(r.Objects) || second.Current < first.Results[0].Rewritten || second.Rewritten == 0 {
		t.Errorf("the second run is %+v", second)
	}
	wantMigrated(t, r)
}

// A client that may write a record can claim that a run has rewritten everything, and has only to verify.
func (e *migrateEnv) testPlanted(t *testing.T) {
	r := e.define(t, "planteds", 10)
	now := metav1.Now()
	text, err := json.Marshal(contract.Record{Format: contract.RecordFormat, Run: "planted", CRDUID: r.CRD.UID, CRDGeneration: r.CRD.Generation,
		State: contract.StateVerifying, Barrier: "1", BarrierKind: contract.BarrierAllServers, StartTime: &now})
	expect.NoError(t, err)
	expect.NoError(t, e.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: standalone.ConfigMapName(r.CRD.Name), Labels: map[string]string{"app.kubernetes.io/managed-by": standalone.ManagedBy}},
		Data:       map[string]string{contract.RecordKey: string(text)},
	}))
	result := e.results(t, 0, r.CRD.Name, "--record-namespace=default").Results[0]
	expect.Equal(t, "rewritten objects", int64(r.Objects), result.Rewritten)
	wantMigrated(t, r)
}

// A run waits while it has no connection, and continues by itself.
func (e *migrateEnv) testLostConnection(t *testing.T) {
	r := e.define(t, "losts", 150)
	target, err := url.Parse(e.Kubeconfig.Host)
	expect.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, err = rest.TransportFor(e.Kubeconfig)
	expect.NoError(t, err)
	var lost atomic.Bool
	var refused atomic.Int32
	// With TLS, so that the run can ask each API server by its address with the same settings.
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if lost.Load() {
			refused.Add(1)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, request)
	}))
	t.Cleanup(proxy.Close)
	ended := make(chan string)
	go func() {
		stdout, stderr, err := e.migrate(r.CRD.Name, "--max-writes-per-second=20", "--server="+proxy.URL, "--insecure-skip-tls-verify")
		ended <- fmt.Sprintf("exit code %d:\n%s%s", ExitCode(err), stdout, stderr)
	}()
	rewriting(t, r)
	lost.Store(true)
	expect.Eventually(t, "the run tries to connect", func() (bool, string) { return refused.Load() > 3, fmt.Sprint(refused.Load()) })
	lost.Store(false)
	if end := <-ended; !strings.HasPrefix(end, "exit code 0:") || !strings.Contains(end, "Complete") {
		t.Error(end)
	}
	wantMigrated(t, r)
}

// A second process finds the record in use. TestConfigMap shows what it does after the first was killed.
func (e *migrateEnv) testTwo(t *testing.T) {
	r := e.define(t, "twos", 150)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error)
	go func() {
		_, _, err := e.migrateIn(ctx, r.CRD.Name, "--max-writes-per-second=5")
		ended <- err
	}()
	rewriting(t, r)
	e.fails(t, 2, "ConfigMap conversion-migrations/kubectl-conversion-migrate."+r.CRD.Name+" is in use by another process", r.CRD.Name)
	wantStoredVersions(t, r, "v1beta1", "v1")
	interrupt()
	expect.Equal(t, "exit code of the first process", 1, ExitCode(<-ended))
	e.results(t, 0, r.CRD.Name)
	wantMigrated(t, r)
}

// The printed Roles suffice, and each rule is needed: without it, the command names the right.
func (e *migrateEnv) testRole(t *testing.T) {
	r := e.define(t, "roles", 40)
	expect.NoError(t, e.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "migrator"}}))
	as := []string{r.CRD.Name, "--as=system:serviceaccount:default:migrator", "--prune=true"}
	e.fails(t, 2, "customresourcedefinitions.apiextensions.k8s.io", as...)
	stdout, _, err := e.migrate(r.CRD.Name, "--print-role", "--bind-to=default:migrator")
	expect.NoError(t, err)
	var roles []*unstructured.Unstructured
	for _, text := range strings.Split(stdout, "---\n")[1:] {
		object := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(text), object))
		if err := e.Client.Create(t.Context(), object); object.GetKind() != "Namespace" || !apierrors.IsAlreadyExists(err) {
			expect.NoError(t, err)
		}
		if kind := object.GetKind(); kind == "ClusterRole" || kind == "Role" {
			roles = append(roles, object)
		}
	}
	expect.Eventually(t, "the rights suffice", func() (bool, string) {
		stdout, stderr, err := e.migrate(append(as, "-o=json")...)
		return err == nil && !strings.Contains(stderr, "without the right"), stdout + stderr
	})
	wantMigrated(t, r)
	removed := 0
	for _, role := range roles {
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		expect.NoError(t, err)
		for i, rule := range rules {
			removed++
			resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
			role.Object["rules"] = slices.Delete(slices.Clone(rules), i, i+1)
			expect.NoError(t, e.Client.Update(t.Context(), role))
			expect.Eventually(t, "the command misses a right for "+resources[0], func() (bool, string) {
				_, stderr, err := e.migrate(append(as, "--dry-run")...)
				if resources[0] == "endpointslices" || resources[0] == "leases" {
					return err == nil && strings.Contains(stderr, "without the right to list "+resources[0]+".") && strings.Count(stderr, "without the right") == 1, stderr
				}
				return ExitCode(err) == 2 && strings.Contains(stderr, resources[0]) && (strings.Contains(stderr, "rights are missing") || strings.Contains(stderr, "forbidden")), stderr
			})
			role.Object["rules"] = rules
			expect.NoError(t, e.Client.Update(t.Context(), role))
		}
	}
	if removed < 7 {
		t.Errorf("%d rules:\n%s", removed, stdout)
	}
}

func (e *migrateEnv) testFailed(t *testing.T) {
	r := e.define(t, "faileds", 10)
	r.RefuseUpdates(t, "v1", "has(object.spec.host)", 3) // until everything is migrated
	e.fails(t, 1, "default/object-0003: AdmissionDenied: ", r.CRD.Name, "--dry-run")
	result := e.results(t, 1, r.CRD.Name).Results[0]
	if result.State != standalone.Failed || result.Failed != 5 || len(result.Failures) != 5 || !strings.HasPrefix(result.Failures[0].Object, "default/object-000") ||
		!strings.Contains(result.Failures[0].Message, "is held back") {
		t.Errorf("result is %+v", result)
	}
	wantStoredVersions(t, r, "v1beta1", "v1")
	r.WantStored(t, map[string]int{"v1": 5, "v1beta1": 5})
	result = e.results(t, 0, r.CRD.Name, "--fallback=OldVersion").Results[0]
	expect.Equal(t, "state, and objects by fallback", fmt.Sprint(standalone.Complete, 5), fmt.Sprint(result.State, result.ByFallback))
	wantMigrated(t, r)
}

func (e *migrateEnv) testUnanswered(t *testing.T) {
	r := e.define(t, "unanswereds", 10, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:9/convert")}}}
	})
	e.fails(t, 1, "127.0.0.1:9", r.CRD.Name, "--timeout=8s")
	wantStoredVersions(t, r, "v1beta1", "v1")
	r.WantStored(t, map[string]int{"v1beta1": 10})
	r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	e.results(t, 0, r.CRD.Name)
	wantMigrated(t, r)
}

func (e *migrateEnv) testRefused(t *testing.T) {
	r := e.define(t, "refuseds", 3)
	name := r.CRD.Name
	e.fails(t, 2, "the cluster has no resource nothing.example.com", "nothing.example.com", name)
	e.fails(t, 2, "the cluster has no resource nothings", "nothings")
	e.fails(t, 2, "no storageVersionHash", "componentstatuses")
	e.fails(t, 2, "the namespace nowhere does not exist", name, "--record-namespace=nowhere")
	e.fails(t, 2, "forbidden", name, "--as=nobody")
	lossy := e.define(t, "lossies", 2, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	}).CRD.Name
	e.fails(t, 2, "the storage version v1 lacks 1 field of v1beta1", lossy, "--dry-run")
	e.fails(t, 0, "v1beta1,v1", lossy, "--dry-run", "--accept-losses")
	expect.NoError(t, e.Client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: lossy}}))
	e.fails(t, 2, "forbidden", "secrets", "--as=nobody")

	migration := testenv.StorageVersionMigration(testenv.ServedMigrations(t, discovery.NewDiscoveryClientForConfigOrDie(e.Kubeconfig)), "theirs",
		schema.GroupVersionResource{Group: migrationtest.Group, Version: "v1", Resource: "refuseds"})
	expect.NoError(t, e.Client.Create(t.Context(), migration))
	migration.Object["status"] = testenv.MigrationStatus("Running")
	expect.NoError(t, e.Client.Status().Update(t.Context(), migration))
	e.fails(t, 2, "is being migrated by storageversionmigrations.storagemigration.k8s.io/theirs", name)
	expect.NoError(t, e.Client.Delete(t.Context(), migration))

	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.Converter.Type = v1alpha1.ConverterNone
	expect.NoError(t, e.Client.Create(t.Context(), policy))
	e.fails(t, 2, "run conversion-operator trigger "+name, name)
	expect.NoError(t, e.Client.Delete(t.Context(), policy))
	r.WantStored(t, map[string]int{"v1beta1": 3})

	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "latecomers." + migrationtest.Group}, Spec: *r.CRD.Spec.DeepCopy()}
	crd.Spec.Names.Plural, crd.Spec.Names.Singular = "latecomers", "latecomer" // its kind is that of another definition
	expect.NoError(t, e.Client.Create(t.Context(), crd))
	e.fails(t, 2, "CustomResourceDefinition latecomers."+migrationtest.Group+" is not Established", crd.Name)
	e.fails(t, 1, "not migrated: ", "--all", "--dry-run")
	expect.NoError(t, e.Client.Delete(t.Context(), crd))
	wantStoredVersions(t, r, "v1beta1", "v1")
}

func (e *migrateEnv) secret(t *testing.T, name string) string {
	t.Helper()
	entry, err := e.Etcd.Get(t.Context(), "/registry/secrets/default/"+name)
	expect.NoError(t, err)
	return string(entry.Value)
}

// testEncryption migrates everything after the keys of Secrets have changed.
func (e *migrateEnv) testEncryption(t *testing.T) {
	const secrets = 30
	create := func(name string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"password": "open-" + name}}
		expect.NoError(t, e.Client.Create(t.Context(), secret))
	}
	for i := range secrets {
		create(fmt.Sprintf("s-%d", i))
	}
	// An API server that does not restart reads the file once a minute.
	writeEncryption(t, e.encryption, `aescbc: {keys: [{name: key1, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}]}`, "identity: {}")
	e.RestartAPIServer(t)
	create("after-the-restart")
	const encrypted = "k8s:enc:aescbc:v1:key1:"
	if is, was := e.secret(t, "after-the-restart"), e.secret(t, "s-7"); !strings.HasPrefix(is, encrypted) || !strings.Contains(was, "open-s-7") {
		t.Fatalf("the API server does not use the key: %.30q, or did so before: %q", is, was)
	}
	report := e.results(t, 0, "--all")
	left := map[string]bool{}
	for _, each := range report.LeftOut {
		left[each.Resource] = true
	}
	expect.Equal(t, "events and leases are left out", []bool{true, true}, []bool{left["events"], left["leases.coordination.k8s.io"]})
	migrated := map[string]standalone.Result{}
	for _, result := range report.Results {
		migrated[result.Resource] = result
	}
	for _, name := range []string{"secrets", "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "refuseds." + migrationtest.Group} {
		expect.Equal(t, name, standalone.Complete, migrated[name].State)
	}
	for i := range secrets {
		name := fmt.Sprintf("s-%d", i)
		expect.Equal(t, "secret "+name+" is encrypted", true, strings.HasPrefix(e.secret(t, name), encrypted))
	}
	// A resource without a CustomResourceDefinition by its name: nothing is left to do.
	if again := e.results(t, 0, "secrets").Results[0]; again.State != standalone.Complete || again.Rewritten != 0 || again.Current < secrets || again.Pruned != nil {
		t.Errorf("result is %+v", again)
	}
}
