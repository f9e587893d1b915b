// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const migrateGroup = "migrate.example.com"

// migrateEnv is an API server, and the file with its encryption keys.
type migrateEnv struct {
	*testenv.Server
	kubeconfig string
	encryption string
}

// TestMigrate runs the command as users do, without the manager.
func TestMigrate(t *testing.T) {
	encryption := filepath.Join(t.TempDir(), "encryption.yaml")
	writeEncryption(t, encryption, "identity: {}")
	server := testenv.For(t, testenv.Options{Durable: true, CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true, Arguments: map[string]string{
		// The API server must answer at the address that it advertises.
		"bind-address":               "0.0.0.0",
		"encryption-provider-config": encryption,
	}})
	e := &migrateEnv{server, server.KubeconfigFile(t), encryption}
	t.Run("a dry run and a migration", e.testWhole)
	t.Run("interrupted, with a ConfigMap", func(t *testing.T) { e.testInterrupted(t, "paused") })
	t.Run("interrupted, with a file", func(t *testing.T) {
		e.testInterrupted(t, "filed", "--record="+filepath.Join(t.TempDir(), "record.json"))
	})
	t.Run("a lost connection", e.testLostConnection)
	t.Run("two at once", e.testTwo)
	t.Run("with the printed Roles alone", e.testRole)
	t.Run("objects that fail", e.testFailed)
	t.Run("a converter that does not answer", e.testUnanswered)
	t.Run("refused", e.testRefused)
	t.Run("Secrets after a change of keys, and everything", e.testEncryption)
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
	var out, errs bytes.Buffer
	root := NewRootCommand()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"migrate", "--kubeconfig", e.kubeconfig, "--propagation-delay=2s", "--pace=Fast"}, args...))
	err = root.ExecuteContext(ctx)
	return out.String(), errs.String(), err
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

// define creates a definition with objects at v1beta1, and changes its storage version to v1.
func (e *migrateEnv) define(t *testing.T, plural string, objects int, changes ...func(*apiextensionsv1.CustomResourceDefinition)) string {
	t.Helper()
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"host": {Type: "string"}}}}}}}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + migrateGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: migrateGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: strings.ToUpper(plural[:1]) + plural[1:]},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", true), version("v1", false)}},
	}
	expect.NoError(t, e.Client.Create(t.Context(), crd))
	object := func(i int) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: migrateGroup, Version: "v1beta1", Kind: crd.Spec.Names.Kind})
		u.SetNamespace("default")
		u.SetName(fmt.Sprintf("o-%04d", i))
		if i%2 == 0 {
			u.Object["spec"] = map[string]any{"host": "a"}
		}
		return u
	}
	expect.Success(t, "the first object is created", func(ctx context.Context) error { return e.Client.Create(ctx, object(0)) })
	var creates errgroup.Group
	creates.SetLimit(16)
	for i := 1; i < objects; i++ {
		creates.Go(func() error { return e.Client.Create(t.Context(), object(i)) })
	}
	expect.NoError(t, creates.Wait())
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	before := crd.DeepCopy()
	crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true
	for _, change := range changes {
		change(crd)
	}
	expect.NoError(t, e.Client.Patch(t.Context(), crd, client.MergeFrom(before)))
	e.wantStored(t, plural, map[string]int{"v1beta1": objects})
	return crd.Name
}

func (e *migrateEnv) stored(t *testing.T, plural string) []etcd.Entry {
	t.Helper()
	entries, _, err := e.Etcd.List(t.Context(), "/registry/"+migrateGroup+"/"+plural+"/")
	expect.NoError(t, err)
	return entries
}

func (e *migrateEnv) versions(t *testing.T, plural string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, entry := range e.stored(t, plural) {
		var object metav1.TypeMeta
		expect.NoError(t, json.Unmarshal(entry.Value, &object))
		count[strings.TrimPrefix(object.APIVersion, migrateGroup+"/")]++
	}
	return count
}

func (e *migrateEnv) wantStored(t *testing.T, plural string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, e.versions(t, plural)); diff != "" {
		t.Errorf("versions in etcd (-want +got):\n%s", diff)
	}
}

func (e *migrateEnv) wantStoredVersions(t *testing.T, name string, want ...string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd))
	if diff := cmp.Diff(want, crd.Status.StoredVersions); diff != "" {
		t.Errorf("status.storedVersions (-want +got):\n%s", diff)
	}
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
	const objects = 1200
	name := e.define(t, "wholes", objects)

	before := e.everything(t)
	stdout, stderr, err := e.migrate(name, "--dry-run", "-o=json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var forecast forecastReport
	expect.NoError(t, json.Unmarshal([]byte(stdout), &forecast))
	want := []standalone.Forecast{{Resource: name, StorageVersion: "v1", StoredVersions: []string{"v1beta1", "v1"}, Objects: objects,
		Prunes: []string{"v1beta1"}, Record: "ConfigMap default/kubectl-conversion-migrate." + name}}
	want[0].Tried = 20
	if diff := cmp.Diff(want, forecast.Forecasts); diff != "" {
		t.Errorf("forecast (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, e.everything(t)); diff != "" {
		t.Errorf("the dry run wrote (-before +after):\n%s", diff)
	}

	e.fails(t, 0, name+": rewriting", name, "--prune=false")
	e.wantStored(t, "wholes", map[string]int{"v1": objects})
	e.wantStoredVersions(t, name, "v1beta1", "v1")

	result := e.results(t, 0, name).Results[0]
	e.wantStoredVersions(t, name, "v1")
	if result.State != standalone.Complete || result.Current != objects || result.Rewritten != 0 || result.Barrier != v1alpha1.BarrierAllServers ||
		!slices.Equal(result.Pruned, []string{"v1beta1"}) || result.Verified == 0 {
		t.Errorf("result is %+v", result)
	}
}

func (e *migrateEnv) testInterrupted(t *testing.T, plural string, args ...string) {
	const objects = 600
	name := e.define(t, plural, objects)
	args = append([]string{name, "-o=json"}, args...)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stdout, stderr, err = e.migrateIn(ctx, append(args, "--max-writes-per-second=50")...)
	}()
	expect.Eventually(t, "some objects are rewritten", func() (bool, string) {
		versions := e.versions(t, plural)
		return versions["v1"] > 100, fmt.Sprint(versions)
	})
	interrupt()
	<-ended
	if ExitCode(err) != 1 || !strings.Contains(stderr, "continue with the same command") {
		t.Fatalf("exit code is %d:\n%s", ExitCode(err), stderr)
	}
	var first migrateReport
	expect.NoError(t, json.Unmarshal([]byte(stdout), &first))
	if got := first.Results[0]; got.State != standalone.Interrupted || got.Rewritten == 0 || got.Rewritten == objects {
		t.Errorf("the first run is %+v", got)
	}
	if left := e.versions(t, plural)["v1beta1"]; left == 0 {
		t.Fatal("the run was not interrupted")
	}
	e.wantStoredVersions(t, name, "v1beta1", "v1")

	second := e.results(t, 0, args...).Results[0]
	if second.Run != first.Results[0].Run || second.State != standalone.Complete || second.Total != objects {
		t.Errorf("the second run is %+v, the first %+v", second, first.Results[0])
	}
	e.wantStored(t, plural, map[string]int{"v1": objects})
	e.wantStoredVersions(t, name, "v1")
}

// proxy forwards connections to an API server, except while the connection is lost.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	conns   []net.Conn
	lost    bool
	refused int
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	p := &proxy{listener: listener, target: target}
	go p.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		p.setLost(true)
	})
	return p
}

func (p *proxy) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.forward(from)
	}
}

func (p *proxy) forward(from net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		p.refused++
		_ = from.Close()
		return
	}
	to, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = from.Close()
		return
	}
	p.conns = append(p.conns, from, to)
	go func() { _, _ = io.Copy(to, from) }()
	go func() { _, _ = io.Copy(from, to) }()
}

// setLost closes all connections, and refuses others, or accepts them again.
func (p *proxy) setLost(lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = lost
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// attempts is the number of refused connections.
func (p *proxy) attempts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// A run waits while it has no connection, and continues by itself.
func (e *migrateEnv) testLostConnection(t *testing.T) {
	const objects = 300
	name := e.define(t, "losts", objects)
	proxy := newProxy(t, net.JoinHostPort(e.ControlPlane.GetAPIServer().Address, e.ControlPlane.GetAPIServer().Port))
	var stdout, stderr string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stdout, stderr, err = e.migrate(name, "--max-writes-per-second=40", "--server=https://"+proxy.listener.Addr().String())
	}()
	expect.Eventually(t, "some objects are rewritten", func() (bool, string) {
		select {
		case <-ended:
			t.Fatalf("the run ended early: %s%s", stdout, stderr)
		default:
		}
		versions := e.versions(t, "losts")
		return versions["v1"] > 20, fmt.Sprint(versions)
	})
	proxy.setLost(true)
	before := proxy.attempts()
	expect.Eventually(t, "the run tries to connect", func() (bool, string) {
		attempts := proxy.attempts() - before
		return attempts > 3, fmt.Sprint(attempts)
	})
	proxy.setLost(false)
	<-ended
	if err != nil || !strings.Contains(stdout, "Complete") {
		t.Errorf("exit code is %d:\n%s%s", ExitCode(err), stdout, stderr)
	}
	e.wantStored(t, "losts", map[string]int{"v1": objects})
	e.wantStoredVersions(t, name, "v1")
}

func (e *migrateEnv) testTwo(t *testing.T) {
	name := e.define(t, "twos", 300)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error)
	go func() {
		_, _, err := e.migrateIn(ctx, name, "--max-writes-per-second=10")
		ended <- err
	}()
	expect.Eventually(t, "the first process rewrites objects", func() (bool, string) {
		versions := e.versions(t, "twos")
		return versions["v1"] > 0, fmt.Sprint(versions)
	})
	e.fails(t, 2, "ConfigMap default/kubectl-conversion-migrate."+name+" is in use by another process", name)
	e.wantStoredVersions(t, name, "v1beta1", "v1")
	interrupt()
	if err := <-ended; ExitCode(err) != 1 {
		t.Errorf("the first process ended with %v", err)
	}
	e.results(t, 0, name)
	e.wantStored(t, "twos", map[string]int{"v1": 300})
	e.wantStoredVersions(t, name, "v1")

	// A process that was killed leaves its name.
	record := &corev1.ConfigMap{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: standalone.ConfigMapName(name)}, record))
	record.Annotations = map[string]string{"conversion-operator.io/migrating": "nobody on nothing"}
	expect.NoError(t, e.Client.Update(t.Context(), record))
	e.results(t, 0, name)
}

func (e *migrateEnv) testRole(t *testing.T) {
	name := e.define(t, "roles", 40)
	expect.NoError(t, e.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "migrator"}}))
	as := []string{name, "--as=system:serviceaccount:default:migrator", "--prune=true"}
	e.fails(t, 2, "customresourcedefinitions.apiextensions.k8s.io", as...)

	stdout, stderr, err := e.migrate(name, "--print-role", "--bind-to=default:migrator")
	if err != nil {
		t.Fatal(err, stderr)
	}
	var roles []client.Object
	for _, text := range strings.Split(stdout, "---\n")[1:] {
		object := &unstructured.Unstructured{}
		expect.NoError(t, yaml.Unmarshal([]byte(text), object))
		expect.NoError(t, e.Client.Create(t.Context(), object))
		if kind := object.GetKind(); kind == "ClusterRole" || kind == "Role" {
			roles = append(roles, object)
		}
	}
	expect.Eventually(t, "the rights suffice", func() (bool, string) {
		stdout, stderr, err := e.migrate(append(as, "-o=json")...)
		return err == nil && !strings.Contains(stderr, "without the right"), stdout + stderr
	})
	e.wantStored(t, "roles", map[string]int{"v1": 40})
	e.wantStoredVersions(t, name, "v1")

	rules := 0
	for _, role := range roles {
		for i := range rulesIn(t, role) {
			rules++
			e.withoutRule(t, role, i, as)
		}
	}
	if rules < 7 {
		t.Errorf("%d rules:\n%s", rules, stdout)
	}
}

func rulesIn(t *testing.T, role client.Object) []rbacv1.PolicyRule {
	t.Helper()
	text, err := json.Marshal(role)
	expect.NoError(t, err)
	var is rbacv1.ClusterRole
	expect.NoError(t, json.Unmarshal(text, &is))
	return is.Rules
}

// withoutRule removes a rule, expects the command to say what is missing, and adds the rule again.
func (e *migrateEnv) withoutRule(t *testing.T, role client.Object, i int, as []string) {
	t.Helper()
	rules := rulesIn(t, role)
	removed := rules[i]
	write := func(rules []rbacv1.PolicyRule) {
		patch, err := json.Marshal(map[string]any{"rules": rules})
		expect.NoError(t, err)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(role.GetObjectKind().GroupVersionKind())
		object.SetNamespace(role.GetNamespace())
		object.SetName(role.GetName())
		expect.NoError(t, e.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
	}
	write(slices.Delete(slices.Clone(rules), i, i+1))
	expect.Eventually(t, fmt.Sprintf("the command misses %v", removed), func() (bool, string) {
		stdout, stderr, err := e.migrate(as...)
		if removed.Resources[0] == "endpointslices" || removed.Resources[0] == "leases" {
			return err == nil && strings.Contains(stderr, "without the right to list "+removed.Resources[0]) && strings.Contains(stdout, " Time "), stdout + stderr
		}
		return ExitCode(err) == 2 && (strings.Contains(stderr, "rights are missing") || strings.Contains(stderr, "forbidden")), stdout + stderr
	})
	write(rules)
	expect.Eventually(t, "the rights suffice again", func() (bool, string) {
		_, stderr, err := e.migrate(append(as, "--dry-run")...)
		return err == nil && !strings.Contains(stderr, "without the right"), stderr
	})
}

func (e *migrateEnv) testFailed(t *testing.T) {
	name := e.define(t, "faileds", 10)
	e.refuse(t, "faileds")
	e.fails(t, 1, "default/o-0003: AdmissionDenied: ", name, "--dry-run")
	result := e.results(t, 1, name).Results[0]
	if result.State != standalone.Failed || result.Failed != 5 || len(result.Failures) != 5 || !strings.HasPrefix(result.Failures[0].Object, "default/o-000") ||
		!strings.Contains(result.Failures[0].Message, "it has no host") {
		t.Errorf("result is %+v", result)
	}
	e.wantStoredVersions(t, name, "v1beta1", "v1")
	e.wantStored(t, "faileds", map[string]int{"v1": 5, "v1beta1": 5})

	result = e.results(t, 0, name, "--fallback=OldVersion").Results[0]
	if result.State != standalone.Complete || result.ByFallback != 5 {
		t.Errorf("result is %+v", result)
	}
	e.wantStored(t, "faileds", map[string]int{"v1": 10})
	e.wantStoredVersions(t, name, "v1")
}

// refuse has an admission policy refuse objects without a host at v1.
func (e *migrateEnv) refuse(t *testing.T, plural string) {
	t.Helper()
	fail, exact := admissionv1.Fail, admissionv1.Exact
	meta := metav1.ObjectMeta{Name: plural + ".hold"}
	expect.NoError(t, e.Client.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail, MatchConstraints: &admissionv1.MatchResources{MatchPolicy: &exact,
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{migrateGroup}, APIVersions: []string{"v1"}, Resources: []string{plural}}}}}},
		Validations: []admissionv1.Validation{{Expression: "has(object.spec.host)", Message: "it has no host"}}}}))
	expect.NoError(t, e.Client.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}))
	try := func() error {
		held := &unstructured.Unstructured{}
		held.SetGroupVersionKind(schema.GroupVersionKind{Group: migrateGroup, Version: "v1", Kind: strings.ToUpper(plural[:1]) + plural[1:]})
		held.SetNamespace("default")
		held.SetName("o-0001")
		return e.Client.Patch(context.WithoutCancel(t.Context()), held, client.RawPatch(types.MergePatchType, []byte("{}")), client.DryRunAll)
	}
	expect.Eventually(t, "the policy is enforced", func() (bool, string) {
		err := try()
		return apierrors.IsInvalid(err), fmt.Sprint(err)
	})
	// Later tests migrate everything.
	t.Cleanup(func() {
		expect.NoError(t, e.Client.Delete(context.WithoutCancel(t.Context()), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}))
		expect.Eventually(t, "the policy is no longer enforced", func() (bool, string) {
			err := try()
			return err == nil, fmt.Sprint(err)
		})
	})
}

func (e *migrateEnv) testUnanswered(t *testing.T) {
	name := e.define(t, "unanswereds", 10, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:9/convert")}}}
	})
	e.fails(t, 1, "127.0.0.1:9", name, "--timeout=10s")
	e.wantStoredVersions(t, name, "v1beta1", "v1")
	e.wantStored(t, "unanswereds", map[string]int{"v1beta1": 10})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Name: name}, crd))
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	expect.NoError(t, e.Client.Update(t.Context(), crd))
	e.results(t, 0, name)
	e.wantStored(t, "unanswereds", map[string]int{"v1": 10})
}

func (e *migrateEnv) testRefused(t *testing.T) {
	name := e.define(t, "refuseds", 3)
	e.fails(t, 2, "the cluster has no resource nothing.example.com", "nothing.example.com", name)
	e.fails(t, 2, "the cluster has no resource nothings", "nothings")
	e.fails(t, 2, "no storageVersionHash", "componentstatuses")
	e.fails(t, 2, "the namespace nowhere does not exist", name, "--record-namespace=nowhere")
	e.fails(t, 2, "forbidden", name, "--as=nobody")
	lossy := e.define(t, "lossies", 2, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	})
	e.fails(t, 2, "the storage version v1 lacks 1 field of v1beta1", lossy, "--dry-run")
	e.fails(t, 0, "v1beta1,v1", lossy, "--dry-run", "--accept-losses")
	expect.NoError(t, e.Client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: lossy}}))
	e.fails(t, 2, "forbidden", "secrets", "--as=nobody")

	migration := testenv.StorageVersionMigration(testenv.ServedMigrations(t, discovery.NewDiscoveryClientForConfigOrDie(e.Kubeconfig)), "theirs",
		schema.GroupVersionResource{Group: migrateGroup, Version: "v1", Resource: "refuseds"})
	expect.NoError(t, e.Client.Create(t.Context(), migration))
	migration.Object["status"] = testenv.MigrationStatus("Running")
	expect.NoError(t, e.Client.Status().Update(t.Context(), migration))
	e.fails(t, 2, "is being migrated by storageversionmigrations.storagemigration.k8s.io/theirs", name)
	expect.NoError(t, e.Client.Delete(t.Context(), migration))

	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.Converter.None = &v1alpha1.NoneConverter{}
	expect.NoError(t, e.Client.Create(t.Context(), policy))
	e.fails(t, 2, "run conversion-operator trigger "+name, name)
	expect.NoError(t, e.Client.Delete(t.Context(), policy))
	e.wantStored(t, "refuseds", map[string]int{"v1beta1": 3})

	unestablished := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Name: name}, unestablished))
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "latecomers." + migrateGroup}, Spec: *unestablished.Spec.DeepCopy()}
	crd.Spec.Names.Plural, crd.Spec.Names.Singular, crd.Spec.Names.Kind = "latecomers", "refused", "Refuseds"
	expect.NoError(t, e.Client.Create(t.Context(), crd))
	e.fails(t, 2, "CustomResourceDefinition latecomers."+migrateGroup+" is not Established", crd.Name)
	e.fails(t, 1, "not migrated: ", "--all", "--dry-run")
	expect.NoError(t, e.Client.Delete(t.Context(), crd))
	e.wantStoredVersions(t, name, "v1beta1", "v1")
}

func (e *migrateEnv) secret(t *testing.T, name string) string {
	t.Helper()
	entry, err := e.Etcd.Get(t.Context(), "/registry/secrets/default/"+name)
	expect.NoError(t, err)
	return string(entry.Value)
}

func (e *migrateEnv) testEncryption(t *testing.T) {
	const secrets = 30
	create := func(name string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"password": "open-" + name}}
		expect.NoError(t, e.Client.Create(t.Context(), secret))
	}
	// An API server that does not restart reads the file once a minute.
	useKey := func(prefix string, providers ...string) {
		t.Helper()
		writeEncryption(t, e.encryption, providers...)
		e.RestartAPIServer(t)
		create("after-the-restart")
		if stored := e.secret(t, "after-the-restart"); !strings.HasPrefix(stored, prefix) {
			t.Fatalf("the API server does not use the key: %.30q", stored)
		}
		expect.NoError(t, e.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "after-the-restart"}}))
	}
	for i := range secrets {
		create(fmt.Sprintf("s-%d", i))
	}
	create("for-all")
	const encrypted = "k8s:enc:aescbc:v1:key1:"
	useKey(encrypted, `aescbc: {keys: [{name: key1, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}]}`, "identity: {}")
	if plain := e.secret(t, "s-7"); !strings.Contains(plain, "open-s-7") {
		t.Fatalf("the secret is already encrypted: %q", plain)
	}
	result := e.results(t, 0, "secrets").Results[0]
	if result.State != standalone.Complete || result.Rewritten < secrets+1 || result.Failed != 0 || result.Pruned != nil {
		t.Errorf("result is %+v", result)
	}
	for i := range secrets {
		if name := fmt.Sprintf("s-%d", i); !strings.HasPrefix(e.secret(t, name), encrypted) {
			t.Errorf("secret %s is not encrypted", name)
		}
	}

	const rotated = "k8s:enc:aescbc:v1:key2:"
	useKey(rotated, `aescbc: {keys: [{name: key2, secret: "ZmVkY2JhOTg3NjU0MzIxMA=="}, {name: key1, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}]}`)
	report := e.results(t, 0, "--all")
	left := map[string]bool{}
	for _, each := range report.LeftOut {
		left[each.Resource] = true
	}
	if !left["events"] || !left["leases.coordination.k8s.io"] {
		t.Errorf("left out: %v", report.LeftOut)
	}
	migrated := map[string]standalone.Result{}
	for _, result := range report.Results {
		migrated[result.Resource] = result
	}
	for _, name := range []string{"secrets", "configmaps", "deployments.apps", "clusterroles.rbac.authorization.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "refuseds." + migrateGroup} {
		if migrated[name].State != standalone.Complete {
			t.Errorf("%s: %+v", name, migrated[name])
		}
	}
	for i := range secrets {
		if name := fmt.Sprintf("s-%d", i); !strings.HasPrefix(e.secret(t, name), rotated) {
			t.Errorf("secret %s has another key", name)
		}
	}
}
