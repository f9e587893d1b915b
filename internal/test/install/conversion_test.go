//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// These tests install the policies that protect spec.conversion, and play the operator: no manager
// runs. TestGuard in controllers shows which writes the guard refuses.

// operator is the user name that the status of each policy has.
const operator = "system:serviceaccount:conversion-system:conversion-operator"

// world is an API server with the operator's admission policies.
type world struct {
	kubectl
	// admin is a client of an administrator, and operator one of the operator.
	admin, operator client.Client
}

// install applies a kustomization of config.
func install(t *testing.T, kubectl kubectl, kustomization string) world {
	t.Helper()
	w := world{kubectl: kubectl}
	w.run(t, "apply", "--server-side", "-k", config+"/"+kustomization)
	// kubectl wait fails for a definition that has no conditions yet.
	expect.Eventually(t, "the kinds are established", func() (bool, string) {
		output, err := w.try(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
		return err == nil, output
	})
	impersonated := rest.CopyConfig(w.kubeconfig)
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: operator, Groups: []string{"system:masters"}}
	w.admin, w.operator = clientOf(t, w.kubeconfig), clientOf(t, impersonated)
	return w
}

func clientOf(t *testing.T, kubeconfig *rest.Config) client.Client {
	t.Helper()
	result, err := client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	expect.NoError(t, err)
	return result
}

// installKeeping installs config/overlays/keep-conversion, and skips the test on a version of
// Kubernetes that does not serve MutatingAdmissionPolicies.
func installKeeping(t *testing.T) world {
	t.Helper()
	kubectl := start(t)
	testenv.NeedMutatingPolicies(t, kubectl.kubeconfig)
	kubectl.play(t, scene(t, "keeping")...)
	return install(t, kubectl, "overlays/keep-conversion")
}

func installGuard(t *testing.T) world {
	t.Helper()
	return install(t, start(t), "default")
}

// protections install the policies by what happens to a write that would set strategy None.
var protections = map[answer]func(*testing.T) world{refused: installGuard, kept: installKeeping}

// conversions are the forms that an active spec.conversion may have, by the name of a group.
var conversions = map[string]string{
	"service":     `{"service": {"namespace": "conversion-system", "name": "converter", "path": "/convert/0123", "port": 8443}, "caBundle": "CA"}`,
	"defaults":    `{"service": {"namespace": "theirs", "name": "converter"}, "caBundle": "CA"}`,
	"system-root": `{"service": {"namespace": "theirs", "name": "converter", "path": "/convert"}}`,
	"url":         `{"url": "https://converter.example.com:9443/convert", "caBundle": "CA"}`,
}

func nameIn(group string) string { return "things." + group + ".example.com" }

// crd is the manifest of a CustomResourceDefinition with a printer column of the given name, and
// with more fields of the spec, as JSON.
func crd(group, column, more string) string {
	version := `{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}},
    additionalPrinterColumns: [{name: ` + column + `, type: string, jsonPath: .metadata.name}]}`
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + nameIn(group) + `}
spec:
  group: ` + group + `.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - ` + fmt.Sprintf(version, "v1", true) + `
  - ` + fmt.Sprintf(version, "v2", false) + `
` + more
}

const (
	none    = "  conversion: {strategy: None}\n"
	foreign = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: theirs, name: webhook, path: /theirs}}}}\n"
)

// activate creates a CustomResourceDefinition like kubectl apply of a manifest without
// spec.conversion, a policy, and its conversion like the operator. It returns the name of the group.
func (w world) activate(t *testing.T, group, clientConfig string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	name := nameIn(group)
	w.run(t, "apply", "-f", file(t, crd(group, "before", "")))
	expect.Eventually(t, name+" is established", func() (bool, string) {
		return crds.Condition(w.read(t, name), apiextensionsv1.Established), "not yet"
	})
	clientConfig = strings.Replace(clientConfig, "CA", caBundle(t, group), 1)
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata: {name: `+name+`}
spec: {converter: {type: URL, url: {url: https://converter.example.com/convert}}}`), policy))
	// An established kind may not be among those that the API server names yet.
	expect.Success(t, "the policy is created", func(ctx context.Context) error { return w.admin.Create(ctx, policy) })
	w.setConversion(t, name, clientConfig)
	active := w.read(t, name)
	w.setStatus(t, name, active.UID, operator)
	return active
}

// setConversion writes spec.conversion like the operator.
func (w world) setConversion(t *testing.T, name, clientConfig string) {
	t.Helper()
	patch := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "`+name+`"}, "spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": `+clientConfig+`}}}}`))
	object := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.NoError(t, w.operator.Patch(t.Context(), object, patch, client.FieldOwner("conversion-operator"), client.ForceOwnership))
}

// setStatus writes the part of a policy's status that admission policies read.
func (w world) setStatus(t *testing.T, name string, uid types.UID, username string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"status": map[string]any{"activatedCRD": uid, "operatorUsername": username}})
	expect.NoError(t, err)
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.NoError(t, w.operator.Status().Patch(t.Context(), policy, client.RawPatch(types.MergePatchType, text)))
}

func (w world) read(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, w.admin.Get(t.Context(), client.ObjectKey{Name: name}, found))
	return found
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crd.yaml")
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// answer is what happens to a write that would set strategy None.
type answer string

const (
	admitted answer = "admitted"
	refused  answer = "refused"
	kept     answer = "kept"
)

// waitFor waits until an update of the CustomResourceDefinition by strategy None has that answer.
func (w world) waitFor(t *testing.T, name string, want answer) {
	t.Helper()
	expect.Eventually(t, "strategy None is "+string(want), func() (bool, string) {
		got, err := w.answerTo(t, name, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
		return got == want, fmt.Sprint(got, err)
	})
}

func (w world) answerTo(t *testing.T, name string, conversion *apiextensionsv1.CustomResourceConversion) (answer, error) {
	t.Helper()
	before := w.read(t, name)
	after := before.DeepCopy()
	after.Spec.Conversion = conversion
	err := w.admin.Update(t.Context(), after, client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "delete the ConversionPolicy first"):
		return refused, nil
	case err != nil:
		return "", err
	case cmp.Equal(before.Spec.Conversion, after.Spec.Conversion):
		return kept, nil
	}
	return admitted, nil
}

// writes are commands that change spec.conversion, with what the manifest FILE says of it. Each also sets the
// name of the printer column to its own name.
var writes = map[string]struct{ command, more string }{
	"replaced":         {"replace -f FILE", ""},
	"replaced-none":    {"replace -f FILE", none},
	"replaced-foreign": {"replace -f FILE", foreign},
	"applied-none":     {"apply -f FILE", none},
	"applied-foreign":  {"apply -f FILE", foreign},
	"forced-none":      {"apply --server-side --force-conflicts -f FILE", none},
	"forced-foreign":   {"apply --server-side --force-conflicts -f FILE", foreign},
	"patched": {`patch crd NAME --type=json -p [{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}},` +
		`{"op":"replace","path":"/spec/versions/0/additionalPrinterColumns/0/name","value":"patched"}]`, ""},
	"edited": {"edit crd NAME", ""},
}

// write runs the command of a write.
func (w world) write(t *testing.T, column, group string) (string, error) {
	t.Helper()
	editor := filepath.Join(t.TempDir(), "edit")
	expect.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i -e 's/- v1beta1/- v2/' -e 's/name: before/name: edited/' \"$1\"\n"), 0o700)) //nolint:gosec // a program
	w.environment = append(w.environment, "KUBE_EDITOR="+editor)
	words := strings.NewReplacer("FILE", file(t, crd(group, column, writes[column].more)), "NAME", nameIn(group))
	return w.try(t, strings.Fields(words.Replace(writes[column].command))...)
}

// TestConversionIsKept: whatever a client writes to an active spec.conversion, and with whichever
// command, the API server keeps it, and accepts the rest of the write.
func TestConversionIsKept(t *testing.T) {
	w := installKeeping(t)
	for form, clientConfig := range conversions {
		for column := range writes {
			t.Run(form+"/"+column, func(t *testing.T) {
				group := column + "." + form
				active := w.activate(t, group, clientConfig)
				w.waitFor(t, active.Name, kept)
				output, err := w.write(t, column, group)
				expect.NoError(t, err)
				t.Log(strings.TrimSpace(output))
				after := w.read(t, active.Name)
				expect.Equal(t, "spec.conversion", active.Spec.Conversion, after.Spec.Conversion)
				expect.Equal(t, "the column, which is the rest of the write,", column, after.Spec.Versions[0].AdditionalPrinterColumns[0].Name)
			})
		}
	}
}

// TestConversionIsGuarded: without the mutating policy, every such write is refused as a whole.
func TestConversionIsGuarded(t *testing.T) {
	w := installGuard(t)
	for column := range writes {
		t.Run(column, func(t *testing.T) {
			active := w.activate(t, column, conversions["service"])
			w.waitFor(t, active.Name, refused)
			output, err := w.write(t, column, column)
			expect.Equal(t, "the write is refused: "+output, true, err != nil)
			expect.Equal(t, "the CustomResourceDefinition", active, w.read(t, active.Name))
		})
	}
}

// TestRepeatedApply: a manifest whose spec.conversion is kept out causes no endless differences:
// kubectl diff shows none, and another apply writes nothing.
func TestRepeatedApply(t *testing.T) {
	w := installKeeping(t)
	for name, flags := range map[string][]string{"client-side": nil, "server-side": {"--server-side", "--force-conflicts"}} {
		for value, more := range map[string]string{"none": none, "foreign": foreign} {
			t.Run(name+"/"+value, func(t *testing.T) {
				active := w.activate(t, value+"."+name, conversions["service"])
				w.waitFor(t, active.Name, kept)
				manifest := file(t, crd(value+"."+name, "before", more))
				w.run(t, append([]string{"apply", "-f", manifest}, flags...)...)
				before := w.read(t, active.Name)
				expect.Equal(t, "generation", active.Generation, before.Generation)
				t.Log(w.run(t, append([]string{"apply", "-f", manifest}, flags...)...))
				expect.Equal(t, "what was applied again", before, w.read(t, active.Name))
				w.run(t, append([]string{"diff", "-f", manifest}, flags...)...)
			})
		}
	}
}

// TestWhatIsNotProtected: without a policy that has activated this CustomResourceDefinition, and
// repairs drift, clients may change spec.conversion, and so may the operator at any time.
func TestWhatIsNotProtected(t *testing.T) {
	for protected, install := range protections {
		t.Run(string(protected), func(t *testing.T) { checkWhatIsNotProtected(t, install(t), protected) })
	}
}

func checkWhatIsNotProtected(t *testing.T, w world, protected answer) {
	active := w.activate(t, "exempt", conversions["service"])
	name, policy := active.Name, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: active.Name}}
	w.waitFor(t, name, protected)

	for what, conversion := range map[string]string{
		"another path":      strings.Replace(conversions["service"], "0123", "4567", 1),
		"another authority": conversions["service"],
		"a fleet":           strings.Replace(conversions["service"], "converter", "converter-fleet", 1),
	} {
		w.setConversion(t, name, strings.Replace(conversion, "CA", caBundle(t, what), 1))
		if now := w.read(t, name); cmp.Equal(now.Spec.Conversion, active.Spec.Conversion) {
			t.Errorf("the operator cannot change spec.conversion to %s", what)
		}
	}
	label := active.DeepCopy()
	label.Labels, label.ResourceVersion = map[string]string{"theirs": "true"}, w.read(t, name).ResourceVersion
	label.Spec.Conversion = w.read(t, name).Spec.Conversion
	expect.NoError(t, w.admin.Update(t.Context(), label))

	w.setStatus(t, name, "another", operator)
	w.waitFor(t, name, admitted)
	w.setStatus(t, name, active.UID, "")
	w.waitFor(t, name, admitted)
	w.setStatus(t, name, active.UID, operator)
	w.waitFor(t, name, protected)

	patch := func(text string) {
		expect.NoError(t, w.admin.Patch(t.Context(), policy, client.RawPatch(types.MergePatchType, []byte(text))))
	}
	patch(`{"spec": {"drift": "Tolerate"}}`)
	w.waitFor(t, name, admitted)
	patch(`{"spec": {"drift": "Repair"}, "metadata": {"finalizers": ["conversion-operator.io/policy"]}}`)
	w.waitFor(t, name, protected)

	// During a deletion that waits, another webhook may take over, and nothing else.
	expect.NoError(t, w.admin.Delete(t.Context(), policy))
	another := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.Unmarshal([]byte(crd("exempt", "before", foreign)), another))
	expect.Eventually(t, "another webhook may take over", func() (bool, string) {
		got, err := w.answerTo(t, name, another.Spec.Conversion)
		return got == admitted, fmt.Sprint(got, err)
	})
	w.waitFor(t, name, protected)
	restore := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]`))
	expect.NoError(t, w.operator.Patch(t.Context(), w.read(t, name), restore))
	expect.Equal(t, "the operator cannot restore strategy None", apiextensionsv1.NoneConverter, w.read(t, name).Spec.Conversion.Strategy)

	// What remains of an incomplete uninstallation protects nothing.
	second := w.activate(t, "second", conversions["service"])
	w.waitFor(t, second.Name, protected)
	patch(`{"metadata": {"finalizers": null}}`)
	w.run(t, "delete", "crd", "conversionpolicies.conversion-operator.io")
	w.waitFor(t, second.Name, admitted)
}

// TestInjectedCABundle: with certificates of the type Injected, another client may replace caBundle of an active
// spec.conversion, and change nothing else of it.
func TestInjectedCABundle(t *testing.T) {
	for protected, install := range protections {
		t.Run(string(protected), func(t *testing.T) {
			w := install(t)
			active := w.activate(t, "injected", conversions["service"])
			w.waitFor(t, active.Name, protected)
			bundle, err := base64.StdEncoding.DecodeString(caBundle(t, "theirs"))
			expect.NoError(t, err)
			injected := active.Spec.Conversion.DeepCopy()
			injected.Webhook.ClientConfig.CABundle = bundle
			got, err := w.answerTo(t, active.Name, injected)
			expect.NoError(t, err)
			expect.Equal(t, "the answer without certificates of the type Injected", protected, got)
			policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: active.Name}}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"certificates": {"type": "Injected"}}}`))
			expect.NoError(t, w.admin.Patch(t.Context(), policy, patch))
			expect.Eventually(t, "caBundle is admitted", func() (bool, string) {
				got, err := w.answerTo(t, active.Name, injected)
				return got == admitted, fmt.Sprint(got, err)
			})
			for what, change := range map[string]func(*apiextensionsv1.CustomResourceConversion){
				"no bundle": func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig.CABundle = nil },
				"another path": func(c *apiextensionsv1.CustomResourceConversion) {
					c.Webhook.ClientConfig.Service.Path = new("/theirs")
				},
				"another Service":  func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig.Service.Name = "theirs" },
				"other versions":   func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ConversionReviewVersions = []string{"v1"} },
				"another strategy": func(c *apiextensionsv1.CustomResourceConversion) { c.Strategy, c.Webhook = "None", nil },
				"a URL": func(c *apiextensionsv1.CustomResourceConversion) {
					c.Webhook.ClientConfig.Service, c.Webhook.ClientConfig.URL = nil, new("https://theirs.example.com")
				},
			} {
				changed := injected.DeepCopy()
				change(changed)
				got, err := w.answerTo(t, active.Name, changed)
				expect.NoError(t, err)
				expect.Equal(t, "the answer to "+what, protected, got)
			}
		})
	}
}

// TestRotationBesideForeignWrites: a client that replaces the whole object never puts an older
// caBundle back: each update starts from the object that is stored.
func TestRotationBesideForeignWrites(t *testing.T) {
	w := installKeeping(t)
	active := w.activate(t, "rotation", conversions["service"])
	w.waitFor(t, active.Name, kept)
	var replaced sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	count := 0
	replaced.Go(func() {
		for ctx.Err() == nil {
			theirs := &apiextensionsv1.CustomResourceDefinition{}
			err := w.admin.Get(t.Context(), client.ObjectKey{Name: active.Name}, theirs)
			if err == nil {
				theirs.Spec.Conversion, theirs.Labels = nil, map[string]string{"count": fmt.Sprint(count)}
				err = w.admin.Update(t.Context(), theirs)
			}
			if err == nil {
				count++
			} else if !apierrors.IsConflict(err) {
				t.Error(err)
				return
			}
		}
	})
	for i := range 20 {
		bundle := caBundle(t, fmt.Sprint(i))
		w.setConversion(t, active.Name, strings.Replace(conversions["service"], "CA", bundle, 1))
		for range 5 {
			if got := w.read(t, active.Name).Spec.Conversion.Webhook.ClientConfig.CABundle; base64.StdEncoding.EncodeToString(got) != bundle {
				t.Errorf("after rotation %d there is another caBundle", i)
			}
		}
	}
	end()
	replaced.Wait()
	t.Logf("%d foreign writes beside 20 rotations", count)
	expect.Equal(t, "a foreign write is accepted", true, count > 0)
}

// TestBesideGatewayAPI: the policies do not depend on others that refuse updates of
// CustomResourceDefinitions, such as that of the Gateway API for its own ones: each refuses what it
// would refuse alone.
func TestBesideGatewayAPI(t *testing.T) {
	w := installKeeping(t)
	w.run(t, "apply", "-f", "testdata/safe-upgrades.yaml")
	active := w.activate(t, "gateway", conversions["service"])
	w.waitFor(t, active.Name, kept)
	expect.Eventually(t, "the other policy is in force", func() (bool, string) {
		_, err := w.try(t, "annotate", "crd", active.Name, "--overwrite", "--dry-run=server", "example.com/channel=experimental")
		return err != nil && strings.Contains(err.Error(), "experimental channel"), fmt.Sprint(err)
	})
	replace := func(channel string) (string, error) {
		text := strings.Replace(crd("gateway", channel, none), "metadata: {", "metadata: {annotations: {example.com/channel: "+channel+"}, ", 1)
		return w.try(t, "replace", "-f", file(t, text))
	}
	if output, err := replace("experimental"); err == nil || !strings.Contains(err.Error(), "experimental channel") {
		t.Errorf("the other policy does not refuse: %s%v", output, err)
	}
	_, err := replace("standard")
	expect.NoError(t, err)
	after := w.read(t, active.Name)
	expect.Equal(t, "spec.conversion", active.Spec.Conversion, after.Spec.Conversion)
	expect.Equal(t, "the column", "standard", after.Spec.Versions[0].AdditionalPrinterColumns[0].Name)
}

// caBundle returns a new certificate, as base64.
func caBundle(t *testing.T, name string) string {
	t.Helper()
	authority, err := pki.NewAuthority(name, time.Now(), time.Hour)
	expect.NoError(t, err)
	return base64.StdEncoding.EncodeToString(authority.Certificate)
}
