//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// harmless are changes that admission accepts from the manager, beside what the manager writes. Paths begin
// with the kind; [+] is another element of a list, and {+} another key of a map.
var harmless = []struct{ path, because string }{
	{`^\w+ metadata\.(generateName|managedFields|selfLink)`, "the API server writes or ignores it"},
	{`^(Deployment|PodDisruptionBudget|Service) metadata\.(labels|annotations)\{\+\}`, "spec.workload.patches may add them"},
	{`^Deployment spec\.template\.metadata\.(labels|annotations)\{\+\}`, "spec.workload.patches may add them"},
	{`^(Deployment|Job) spec\.template\.spec\.(affinity|imagePullSecrets|nodeSelector|priorityClassName|tolerations|topologySpreadConstraints)`, "the policy or the manager's pod has them"},
	{`^Deployment spec\.template\.spec\.(containers|dnsPolicy|initContainers|restartPolicy|schedulerName|volumes)`, "spec.workload.patches may; the token is that of the same account, and Secrets of its namespace are readable for the manager"},
	{`^(Deployment|Job) spec\.template\.spec(\.containers\[\])?\.securityContext`, "values that the restricted Pod Security Standard allows"},
	{`^Job spec\.template\.spec\.containers\[\]\.(args|ports|resources|termination)`, "only the container itself reads them"},
	{`^Job spec\.suspend`, "the manager suspends migrations"},
	{`^Deployment spec\.template\.spec\.hostNetwork`, "spec.workload.hostNetwork of a policy; the namespace refuses such pods until an administrator labels it"},
	{`^Deployment spec\.(progressDeadlineSeconds|selector|strategy)`, "the API server's default, or it concerns these pods only"},
	{`^PodDisruptionBudget spec\.(minAvailable|selector|unhealthyPodEvictionPolicy)`, "spec.workload.patches may; it concerns pods of one namespace"},
	{`^Service spec\.(clusterIPs?|internalTrafficPolicy|ipFamil|ports|sessionAffinity|trafficDistribution)`, "spec.workload.patches may; it leads to the same pods"},
	{`^(ConfigMap|Secret) (binaryData|data|stringData)`, "the manager writes any content"},
	{`^(Deployment|Job) spec\.template\.metadata\.creationTimestamp`, "no program reads it"},
	{`^ClusterRole rules\[\]\.resourceNames`, "it is less than the manager may grant"},
	{`^FlowSchema spec\.(distinguisherMethod|rules)`, "it concerns requests of the one ServiceAccount"},
	{`^ValidatingWebhookConfiguration webhooks\[\]\.(admissionReviewVersions|clientConfig\.caBundle|clientConfig\.service\.port|matchConditions|rules\[\])`, "a converter pod is asked about fewer objects, or cannot be reached"},
	{`^Certificate spec\.(dnsNames|duration|ipAddresses|issuerRef|privateKey)`, "the policy names the issuer, whose approver decides about names"},
	{`^CustomResourceDefinition spec\.conversion`, "the threat model has this limit"},
}

// fields tries writes. Written has the paths that the manager writes, by kind.
type fields struct {
	random  *rand.Rand
	written map[string]bool
}

// hostile are the texts and keys of fields that the manager does not write.
var hostile = []string{"hostile", "true", "x", "192.0.2.1", "/etc", "example.com", "example.com/hostile", "LoadBalancer", "NodePort", "ExternalName", "Local",
	"None", "Cluster", "kubernetes.io/service-account-token", "Unconfined", "Unmasked", "Always", "Never", "OnFailure", "Delete", "default", "*", "get", "v1", "Secret",
	"rbac.authorization.k8s.io/aggregate-to-view", "foregroundDeletion", "hostile.example.com/held", "84fc43f2-5ee2-4ffc-9e1d-6e5fdb4da2f1", "conversion-operator",
	"TCP", "Orphan", "ClientIP", "PreferClose", "NonIndexed", "Indexed", "Failed", "IfHealthyBudget", "AlwaysAllow", "Directory", "RuntimeDefault", "true == true", "Pod", "Immediate"}

// fieldsOf returns the fields of a struct by their names, with those of embedded structs.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	found := map[string]reflect.Type{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			maps.Copy(found, fieldsOf(field.Type))
		case name != "" && name != "-":
			found[name] = field.Type
		}
	}
	return found
}

// isText reports that a type has a JSON form of its own, such as a time or a quantity.
func isText(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) || of == reflect.TypeFor[[]byte]()
}

// record remembers the paths of an object.
func (f *fields) record(value any, of reflect.Type, path string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	f.written[path] = true
	switch value := value.(type) {
	case map[string]any:
		if of.Kind() == reflect.Struct && !isText(of) {
			for name, field := range fieldsOf(of) {
				if member, has := value[name]; has {
					f.record(member, field, path+"."+name)
				}
			}
		}
	case []any:
		for _, element := range value {
			f.record(element, of.Elem(), path+"[]")
		}
	}
}

// change returns a value with one change that the manager does not make, and its path, which is empty if
// there is none.
func (f *fields) change(value any, of reflect.Type, path string) (any, string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case !f.written[path] && (value == nil || of.Kind() != reflect.Struct || isText(of)):
		return f.fill(of, 0), path
	case isText(of):
		return value, ""
	}
	switch of.Kind() {
	case reflect.Struct:
		members, all := maps.Clone(value.(map[string]any)), fieldsOf(of)
		order := slices.Sorted(maps.Keys(all))
		f.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, name := range order {
			member, has := members[name]
			if !has && f.written[path+"."+name] {
				continue
			}
			if changed, where := f.change(member, all[name], path+"."+name); where != "" {
				members[name] = changed
				return members, where
			}
		}
	case reflect.Slice:
		elements, _ := value.([]any)
		elements = slices.Clone(elements)
		if len(elements) == 0 || f.random.IntN(4) == 0 {
			another := f.fill(of.Elem(), 0)
			if slices.ContainsFunc(elements, func(element any) bool { return reflect.DeepEqual(element, another) }) {
				return value, ""
			}
			return append(elements, another), path + "[+]"
		}
		i := f.random.IntN(len(elements))
		changed, where := f.change(elements[i], of.Elem(), path+"[]")
		elements[i] = changed
		return elements, where
	case reflect.Map:
		members, _ := value.(map[string]any)
		members = maps.Clone(members)
		if members == nil {
			members = map[string]any{}
		}
		members[hostile[f.random.IntN(len(hostile))]] = f.fill(of.Elem(), 0)
		return members, path + "{+}"
	}
	return value, ""
}

// fill returns a value: of a struct, the fields that must be there and one other.
func (f *fields) fill(of reflect.Type, depth int) any {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[metav1.Time](), of == reflect.TypeFor[metav1.MicroTime]():
		return "2026-01-01T00:00:00Z"
	case of == reflect.TypeFor[metav1.Duration]():
		return "2h0m0s"
	case of == reflect.TypeFor[[]byte]():
		return "aG9zdGlsZQ=="
	case isText(of):
		return int64(1)
	}
	switch of.Kind() {
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return []int64{1, 2, 443, 65534}[f.random.IntN(4)]
	case reflect.String:
		return hostile[f.random.IntN(len(hostile))]
	case reflect.Slice:
		return []any{f.fill(of.Elem(), depth)}
	case reflect.Map:
		return map[string]any{hostile[f.random.IntN(len(hostile))]: f.fill(of.Elem(), depth)}
	case reflect.Struct:
		return f.fillStruct(of, depth)
	}
	return nil
}

func (f *fields) fillStruct(of reflect.Type, depth int) map[string]any {
	members, all := map[string]any{}, fieldsOf(of)
	order := slices.Sorted(maps.Keys(all))
	if len(order) == 0 {
		return members
	}
	chosen := order[f.random.IntN(len(order))]
	for _, name := range order {
		required := slices.ContainsFunc(reflect.VisibleFields(of), func(field reflect.StructField) bool {
			return field.Tag.Get("json") == name
		})
		if depth < 4 && (required || name == chosen) {
			members[name] = f.fill(all[name], depth+1)
		}
	}
	return members
}

// shape is the kind of object of a try.
type shape struct {
	object *unstructured.Unstructured
	of     reflect.Type
	writes map[string]any
	stored bool
}

// TestConfinementOfFields takes what the manager writes, from the steps of stories, and changes each field
// that it never writes, as the manager: admission refuses the write, or this file says why it may be. The
// fields are those of the Go types, so that new ones are tried, too.
func TestConfinementOfFields(t *testing.T) {
	admin, manager := confined(t)
	f := &fields{random: rand.New(rand.NewPCG(0, release.Seed(t))), written: map[string]bool{}} //nolint:gosec // no secrets
	shapes := f.shapes(t, admin)
	for _, s := range shapes {
		f.record(s.writes, s.of, s.object.GetKind())
	}
	tries := 1000
	if release.Playing() {
		tries = 10_000
	}
	counts := map[string]int{}
	attempt := func(s *shape) {
		if s.stored {
			expect.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(s.object), s.object))
		}
		changed, path := f.change(s.object.Object, s.of, s.object.GetKind())
		kind, field, _ := strings.Cut(path, ".")
		counts[f.attempt(t, admin, manager, s, &unstructured.Unstructured{Object: changed.(map[string]any)}, kind+" "+field)]++
	}
	for range tries / 2 {
		s := &shapes[f.random.IntN(len(shapes))]
		if !s.stored {
			attempt(s)
		}
	}
	for i := range shapes {
		if s := &shapes[i]; !s.stored {
			expect.NoError(t, manager.Create(t.Context(), s.object))
			s.stored = true
		}
	}
	for range tries / 2 {
		attempt(&shapes[f.random.IntN(len(shapes))])
	}
	t.Logf("of %d tries with %d objects: %v", tries, len(shapes), counts)
	if counts["refused"] < tries/10 {
		t.Errorf("admission decided about few of the tries: %v", counts)
	}
}

// attempt does a write in a dry run, as an administrator and as the manager.
func (f *fields) attempt(t *testing.T, admin, manager client.Client, s *shape, changed *unstructured.Unstructured, path string) string {
	t.Helper()
	write := func(c client.Client, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		object = object.DeepCopy()
		if s.stored {
			return object, c.Update(t.Context(), object, client.DryRunAll)
		}
		return object, c.Create(t.Context(), object, client.DryRunAll)
	}
	before, err := write(admin, s.object)
	expect.NoError(t, err)
	after, err := write(admin, changed)
	switch {
	case err != nil:
		return "invalid"
	case reflect.DeepEqual(essence(before), essence(after)):
		return "ignored"
	}
	_, err = write(manager, changed)
	switch {
	case err == nil && slices.ContainsFunc(harmless, func(each struct{ path, because string }) bool { return regexp.MustCompile(each.path).MatchString(path) }):
		return "harmless"
	case err == nil:
		text, _ := json.Marshal(essence(after))
		t.Errorf("the manager may change %s: %s", path, text)
		return "accepted"
	case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the operator may"):
		t.Errorf("%s: the answer to the manager is %v", path, err)
	}
	return "refused"
}

// essence is an object without what API servers choose.
func essence(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	for _, name := range []string{"uid", "creationTimestamp", "managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", name)
	}
	if object.GetKind() == "Service" {
		unstructured.RemoveNestedField(content, "spec", "clusterIP")
		unstructured.RemoveNestedField(content, "spec", "clusterIPs")
	}
	if object.GetKind() == "Job" {
		unstructured.RemoveNestedField(content, "spec", "selector")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "labels", "controller-uid")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid")
	}
	return content
}

// confined starts an API server on which the manager is confined, and returns clients of an administrator
// and of the manager, to which RBAC allows everything.
func confined(t *testing.T) (admin, manager client.Client) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	expect.NoError(t, err)
	server := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs,
		filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_certificates.yaml")}})
	expect.NoError(t, server.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "conversion-system"}}))
	_, err = testenv.Install(t.Context(), server.Client, "rbac/service_account.yaml", "rbac/confinement.yaml")
	expect.NoError(t, err)
	config := rest.CopyConfig(server.Kubeconfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:conversion-system:conversion-operator", Groups: []string{"system:masters"}}
	manager, err = client.New(config, client.Options{Scheme: scheme.New()})
	expect.NoError(t, err)
	foreign := metav1.ObjectMeta{Name: "foreign", Namespace: "conversion-system"}
	ours := metav1.ObjectMeta{Name: "ours", Labels: names.FleetLabels("default")}
	for policy, object := range map[string]client.Object{
		"objects": &corev1.ConfigMap{ObjectMeta: foreign}, "requests": &coordinationv1.Lease{ObjectMeta: foreign},
		"granted-roles": &rbacv1.ClusterRole{ObjectMeta: ours}, "size-webhooks": &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: ours},
		"policies-of-others": &v1alpha1.ConverterFleet{ObjectMeta: ours}, "definitions": definition(t),
	} {
		expect.Eventually(t, policy+" confines the manager", func() (bool, string) {
			err := manager.Create(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll) //nolint:forcetypeassert // a copy is of the same type
			return err != nil && strings.Contains(err.Error(), "'"+policy+".conversion-operator.io'"), fmt.Sprint(err)
		})
	}
	return server.Client, manager
}

func definition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(t, bothStoredNew, crd)
	return crd
}

// shapes are objects that the manager writes: those of steps, and those of which steps have only the content.
func (f *fields) shapes(t *testing.T, admin client.Client) (shapes []shape) {
	t.Helper()
	known, all := map[string]bool{}, scheme.New()
	add := func(object runtime.ApplyConfiguration) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		expect.NoError(t, err)
		u := &unstructured.Unstructured{Object: content}
		if id := u.GetKind() + " " + u.GetName(); !known[id] {
			known[id] = true
			typed, err := all.New(u.GroupVersionKind())
			expect.NoError(t, err)
			shapes = append(shapes, shape{object: u, of: reflect.TypeOf(typed).Elem(), writes: content})
		}
	}
	for _, story := range []struct {
		policy string
		play   func(*world)
	}{{policyYAML, sizeAdmission}, {policyYAML, certificatesByCertManager}, {policyYAML, versionRetired}, {policyYAML, policyFirst}, {imageYAML, imageStory}} {
		w := newWorld(t, story.policy)
		w.observed.Settings.Inherited = podspec.Inherited{ImagePullSecrets: []string{"registry"}, Placement: v1alpha1.Placement{PriorityClassName: "urgent"}}
		w.writes = func(s step.Step) {
			switch s := s.(type) {
			case step.Apply:
				add(s.Object)
			case step.Create:
				add(s.Object)
			}
		}
		story.play(w)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "conversion-system", Name: name, Labels: names.FleetLabels("default"), Annotations: map[string]string{names.FleetAnnotation: "default"}}
	}
	policy := &v1alpha1.ConversionPolicy{}
	read(t, policyYAML, policy)
	for _, s := range []struct {
		object client.Object
		// writes has all that the manager writes of an object of others.
		writes string
	}{
		{&corev1.Pod{ObjectMeta: meta("pod"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "converter", Image: "a"}}}}, `{"metadata": {}}`},
		{definition(t), `{"spec": {"conversion": {}, "versions": [{"served": true, "storage": true, "deprecated": true, "deprecationWarning": ""}]}}`},
		{policy, `{"metadata": {"finalizers": []}}`},
		{&corev1.Secret{ObjectMeta: meta("converter-fleet-default-tls"), Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}, observed.CAKey: {}}}, ""},
		{&corev1.ConfigMap{ObjectMeta: meta("converter-fleet-default-rulesets-00"), BinaryData: map[string][]byte{"a": []byte("b")}}, ""},
		{&v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: names.FleetLabels("default")}}, ""},
	} {
		if s.writes != "" {
			expect.NoError(t, admin.Create(t.Context(), s.object))
		}
		kind, err := admin.GroupVersionKindFor(s.object)
		expect.NoError(t, err)
		s.object.GetObjectKind().SetGroupVersionKind(kind)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.object)
		expect.NoError(t, err)
		all := shape{object: &unstructured.Unstructured{Object: content}, of: reflect.TypeOf(s.object).Elem(), writes: content, stored: s.writes != ""}
		if s.writes != "" {
			all.writes = nil
			expect.NoError(t, json.Unmarshal([]byte(s.writes), &all.writes))
		}
		shapes = append(shapes, all)
	}
	return shapes
}
