//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// asManager returns a client that RBAC allows everything, and that is confined.
func asManager(t *testing.T) client.Client {
	t.Helper()
	return as(t, operator, "system:masters")
}

const confinedPolicy = "crontabs.confined.example.com"

// granted returns what the manager may grant. Each test changes one thing.
func granted() *rbacv1.ClusterRole {
	name := names.MigrationRights(confinedPolicy)
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{names.ManagedByLabel: names.ManagedBy},
			Annotations: map[string]string{names.PolicyAnnotation: confinedPolicy}},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"confined.example.com"}, Resources: []string{"crontabs", "crontabs/status"}, Verbs: []string{"list", "patch"}},
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
				ResourceNames: []string{confinedPolicy}, Verbs: []string{"get"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}},
		},
	}
}

func bound() *rbacv1.ClusterRoleBinding {
	role := granted()
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: role.Name}},
	}
}

// grantedHere returns the Role of a migration.
func grantedHere() *rbacv1.Role {
	role := granted()
	role.Namespace = system
	records := func(verbs []string, of ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: of, Verbs: verbs}
	}
	return &rbacv1.Role{ObjectMeta: role.ObjectMeta, Rules: []rbacv1.PolicyRule{
		records([]string{"get", "patch"}, names.Run(confinedPolicy, "01234567")),
		records([]string{"get"}, names.Run(confinedPolicy, "89abcdef")),
		records([]string{"get"}, names.Rulesets(confinedPolicy)),
		records([]string{"get"}, names.Shard("default", 7)),
	}}
}

func boundHere() *rbacv1.RoleBinding {
	role := granted()
	role.Namespace = system
	return &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: role.Name}},
	}
}

func setBack() *flowcontrolv1.FlowSchema {
	role := granted()
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: role.ObjectMeta,
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: migration.DefaultPriorityLevel},
			MatchingPrecedence:         8500,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: system, Name: role.Name}}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			}},
		},
	}
}

// sizeWebhooks is the webhook configuration by which API servers refuse oversized objects.
func sizeWebhooks() *admissionregistrationv1.ValidatingWebhookConfiguration {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group, crd.Spec.Names.Plural, crd.Spec.Scope = "confined.example.com", "crontabs", apiextensionsv1.NamespaceScoped
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v1beta1"}}
	return activation.AdmissionConfiguration(confinedPolicy, crd, "v1", []activation.AdmissionClient{{
		Hash: "0123456789abcdef", Condition: "has(object.spec)",
		Client: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: system, Name: names.Child(confinedPolicy), Path: new(activation.AdmitPath + "/0123456789abcdef"), Port: new(int32(443)),
		}},
	}})
}

func webhookOf(change func(*admissionregistrationv1.ValidatingWebhook)) client.Object {
	return changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { change(&c.Webhooks[0]) })
}

// creating is a dry run that creates an object.
func creating(as client.Client, object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return as.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll) //nolint:forcetypeassert // a copy is of the same type
	}
}

// changed is an object that differs from what is accepted.
func changed[T client.Object](object T, change func(T)) T {
	change(object)
	return object
}

// TestConfinement: a manager that RBAC allows everything cannot grant rights that no policy needs,
// neither to itself nor to others, and cannot change what others granted.
func TestConfinement(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	withoutWebhooks := changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		c.Name, c.Webhooks = c.Name+"-none", nil
	})
	accepted := []client.Object{granted(), grantedHere(), bound(), boundHere(), setBack(), sizeWebhooks(), withoutWebhooks,
		observes(names.ReadRights, "get", "list"), observes(names.CleanRights, "list", "patch")}
	for _, name := range []string{"converter-fleet-things.example.com", "a-plural-that-is.cut-at-a-dash-within-the-------dashes.example.com",
		"a-plural-that-is-long.and.a.group.that.is.longer.example.com", "httproutes.gateway.networking.k8s.io", "machines.machine.openshift.io"} {
		accepted = append(accepted, about(name))
	}
	for _, object := range accepted {
		expect.NoError(t, manager.Create(t.Context(), object, client.DryRunAll))
	}
	for name, object := range refusedGrants() {
		t.Run("refused: "+name, func(t *testing.T) { refuse(t, "the operator may", creating(manager, object)) })
	}
}

func refusedGrants() map[string]client.Object {
	role := func(change func(*rbacv1.PolicyRule)) *rbacv1.ClusterRole {
		return changed(granted(), func(r *rbacv1.ClusterRole) { change(&r.Rules[0]) })
	}
	return map[string]client.Object{
		"a role without the label": changed(granted(), func(r *rbacv1.ClusterRole) { r.Labels = nil }),
		"a role of another name":   changed(granted(), func(r *rbacv1.ClusterRole) { r.Name = "view" }),
		"a role without a hash":    changed(granted(), func(r *rbacv1.ClusterRole) { r.Name = "crontabs-confined-example-com-migrate" }),
		"a role with a policy's name in part": changed(granted(), func(r *rbacv1.ClusterRole) {
			r.Name = strings.Replace(r.Name, "crontabs-confined", "crontabs", 1)
		}),
		"a role of another policy's name": changed(granted(), func(r *rbacv1.ClusterRole) { r.Name = names.MigrationRights("gadgets.confined.example.com") }),
		"a role of no policy":             changed(granted(), func(r *rbacv1.ClusterRole) { r.Annotations = nil }),
		"a role that aggregates others": changed(granted(), func(r *rbacv1.ClusterRole) {
			r.Rules, r.AggregationRule = nil, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
		}),
		"get for a migration": role(func(rule *rbacv1.PolicyRule) { rule.Verbs = []string{"get", "list", "patch"} }),
		"patch for samples":   observes(names.ReadRights, "get", "list", "patch"),
		"status for samples": changed(observes(names.ReadRights, "get", "list"), func(r *rbacv1.ClusterRole) {
			r.Rules[0].Resources = []string{"crontabs", "crontabs/status"}
		}),
		"leases for samples": changed(observes(names.ReadRights, "get", "list"), func(r *rbacv1.ClusterRole) {
			r.Rules = append(r.Rules, granted().Rules[3])
		}),
		"get for managedFields": observes(names.CleanRights, "get", "list", "patch"),
		"another verb":          role(func(rule *rbacv1.PolicyRule) { rule.Verbs = append(rule.Verbs, "delete") }),
		"all verbs":             role(func(rule *rbacv1.PolicyRule) { rule.Verbs = []string{"*"} }),
		"another resource":      role(func(rule *rbacv1.PolicyRule) { rule.Resources = append(rule.Resources, "jobs") }),
		"another group":         role(func(rule *rbacv1.PolicyRule) { rule.APIGroups = append(rule.APIGroups, "") }),
		"all groups":            role(func(rule *rbacv1.PolicyRule) { rule.APIGroups = []string{"*"} }),
		"Secrets":               role(func(rule *rbacv1.PolicyRule) { rule.APIGroups, rule.Resources = []string{""}, []string{"secrets"} }),
		"more of leases":        changed(granted(), func(r *rbacv1.ClusterRole) { r.Rules[3].Verbs = []string{"list", "patch"} }),
		"URLs": role(func(rule *rbacv1.PolicyRule) {
			*rule = rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}
		}),
		"Secrets by a name":        about("secrets."),
		"all resources of a group": about("*.confined.example.com"),
		"a webhook about a group": changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Annotations[names.PolicyAnnotation] = "*.confined.example.com"
			for i := range c.Webhooks {
				c.Webhooks[i].Rules[0].Resources = []string{"*"}
			}
		}),
		"roles by a name":               about("clusterroles.rbac.authorization.k8s.io"),
		"ingresses by a name":           about("ingresses.networking.k8s.io"),
		"policies":                      about("conversionpolicies.conversion-operator.io"),
		"probes":                        about("conversionprobes.probe.conversion-operator.io"),
		"clients of OpenShift":          about("oauthclients.oauth.openshift.io"),
		"users of OpenShift":            about("users.user.openshift.io"),
		"roles of OpenShift":            about("clusterroles.authorization.openshift.io"),
		"constraints of OpenShift":      about("securitycontextconstraints.security.openshift.io"),
		"a Role on Secrets":             changed(grantedHere(), func(r *rbacv1.Role) { r.Rules[0].Resources = []string{"secrets"} }),
		"a Role on all ConfigMaps":      changed(grantedHere(), func(r *rbacv1.Role) { r.Rules[0].ResourceNames = nil }),
		"a Role on another ConfigMap":   changed(grantedHere(), func(r *rbacv1.Role) { r.Rules[0].ResourceNames[0] = "kube-root-ca.crt" }),
		"a Role that writes rulesets":   changed(grantedHere(), func(r *rbacv1.Role) { r.Rules[2].Verbs = []string{"patch"} }),
		"a Role for samples":            changed(grantedHere(), func(r *rbacv1.Role) { r.Name = names.ReadRights(confinedPolicy) }),
		"a Role in another namespace":   changed(grantedHere(), func(r *rbacv1.Role) { r.Namespace = "default" }),
		"a binding of a foreign Role":   changed(boundHere(), func(b *rbacv1.RoleBinding) { b.Namespace = "default" }),
		"all CustomResourceDefinitions": changed(granted(), func(r *rbacv1.ClusterRole) { r.Rules[1].ResourceNames = nil }),
		"a CustomResourceDefinition's change": changed(granted(), func(r *rbacv1.ClusterRole) {
			r.Rules[1].Verbs = []string{"patch"}
		}),
		"a binding of another role":   changed(bound(), func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "cluster-admin" }),
		"a binding without the label": changed(bound(), func(b *rbacv1.ClusterRoleBinding) { b.Labels = nil }),
		"a binding to a user": changed(bound(), func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: b.Name}}
		}),
		"a binding to itself":             changed(bound(), func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "conversion-operator" }),
		"a binding in another namespace":  changed(bound(), func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Namespace = "default" }),
		"cluster-admin in its namespace":  changed(boundHere(), func(b *rbacv1.RoleBinding) { b.RoleRef.Kind, b.RoleRef.Name = "ClusterRole", "cluster-admin" }),
		"a ClusterRole of the name":       changed(boundHere(), func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "ClusterRole" }),
		"a FlowSchema to another level":   changed(setBack(), func(f *flowcontrolv1.FlowSchema) { f.Spec.PriorityLevelConfiguration.Name = "exempt" }),
		"a FlowSchema for another client": changed(setBack(), func(f *flowcontrolv1.FlowSchema) { f.Spec.Rules[0].Subjects[0].ServiceAccount.Name = "*" }),
		"a webhook without the label":     changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Labels = nil }),
		"a webhook of another name":       changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Name = "conversion-operator-other" }),
		"a webhook of no policy":          changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Annotations = nil }),
		"a webhook about Secrets": webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules[0].APIGroups, w.Rules[0].Resources = []string{""}, []string{"secrets"}
		}),
		"a webhook about all":          webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[0].Resources = []string{"*"} }),
		"a webhook about all groups":   webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[0].APIGroups = []string{"*"} }),
		"a webhook elsewhere":          webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Namespace = "default" }),
		"a webhook of another Service": webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Name = "other" }),
		"a webhook at another path":    webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service.Path = new("/validate") }),
		"a webhook outside": webhookOf(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ClientConfig.Service, w.ClientConfig.URL = nil, new("https://example.com/admit/")
		}),
		"a FlowSchema without the label": changed(setBack(), func(f *flowcontrolv1.FlowSchema) { f.Labels = nil }),
	}
}

// about grants a migration the objects of a policy of this name.
func about(name string) *rbacv1.ClusterRole {
	return changed(granted(), func(r *rbacv1.ClusterRole) {
		plural, group, _ := strings.Cut(name, ".")
		r.Name = names.MigrationRights(name)
		r.Annotations[names.PolicyAnnotation] = name
		r.Rules = r.Rules[:1]
		r.Rules[0].APIGroups, r.Rules[0].Resources = []string{group}, []string{plural}
	})
}

// observes grants what is not for a migration.
func observes(role func(policy string) string, verbs ...string) *rbacv1.ClusterRole {
	return changed(about(confinedPolicy), func(r *rbacv1.ClusterRole) {
		r.Name = role(confinedPolicy)
		r.Rules[0].Resources, r.Rules[0].Verbs = []string{"crontabs"}, verbs
	})
}

// refuse waits until a write is refused with a message.
func refuse(t *testing.T, message string, write func(context.Context) error) {
	t.Helper()
	expect.Eventually(t, "the write is refused", func() (bool, string) {
		err := write(t.Context())
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), message), fmt.Sprint(err)
	})
}

// TestConfinementToCustomKinds: the manager gets no rights to a group that API servers serve
// themselves or through another server, even if no list has it. The test is not parallel, as no client can
// discover all kinds meanwhile.
func TestConfinementToCustomKinds(t *testing.T) {
	manager := asManager(t)
	aggregate(t, "user.confined.example.com")
	expect.NoError(t, manager.Create(t.Context(), about("conversions.confined.example.com"), client.DryRunAll))
	for _, object := range []client.Object{about("users.user.confined.example.com"), changed(sizeWebhooks(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
		c.Annotations[names.PolicyAnnotation] = "users.user.confined.example.com"
		for _, webhook := range c.Webhooks {
			for i := range webhook.Rules {
				webhook.Rules[i].APIGroups, webhook.Rules[i].Resources = []string{"user.confined.example.com"}, []string{"users"}
			}
		}
	})} {
		refuse(t, "v1.user.confined.example.com is another API", creating(manager, object))
	}
}

// aggregate registers a group of another API server.
func aggregate(t *testing.T, group string) {
	t.Helper()
	aggregated := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": system, "name": "aggregated"}}}}
	aggregated.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	aggregated.SetName("v1." + group)
	expect.NoError(t, cluster.Create(t.Context(), aggregated))
	t.Cleanup(func() { expect.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), aggregated)) })
}

// TestConfinementProtectsForeignObjects: the manager can neither change nor delete them.
func TestConfinementProtectsForeignObjects(t *testing.T) {
	t.Parallel()
	manager := asManager(t)
	theirs := changed(about("crontabs.theirs.example.com"), func(r *rbacv1.ClusterRole) { r.Labels = nil })
	expect.NoError(t, cluster.Create(t.Context(), theirs))
	t.Cleanup(func() { expect.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), theirs)) })
	taken := changed(theirs.DeepCopy(), func(r *rbacv1.ClusterRole) { r.Labels = granted().Labels })
	refuse(t, "the operator may change only", func(ctx context.Context) error { return manager.Update(ctx, taken, client.DryRunAll) })
	refuse(t, "the operator may change only", func(ctx context.Context) error { return manager.Delete(ctx, theirs, client.DryRunAll) })
	for _, name := range []string{"conversion-operator", "conversion-operator-converter"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
		annotate := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"conversion-operator.io/priority-level":"exempt"}}}`))
		refuse(t, "the operator may", func(ctx context.Context) error { return manager.Delete(ctx, account.DeepCopy(), client.DryRunAll) })
		refuse(t, "the operator may", func(ctx context.Context) error {
			return manager.Patch(ctx, account.DeepCopy(), annotate, client.DryRunAll)
		})
	}
	policy := create(t, `{metadata: {name: "crontabs.spec.confined.example.com"}, spec: {paused: true, converter: {type: None}}}`, &v1alpha1.ConversionPolicy{})
	t.Cleanup(func() {
		expect.NoError(t, client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(t.Context()), policy)))
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":false}}`))
	refuse(t, "may not change the spec", func(ctx context.Context) error { return manager.Patch(ctx, policy.DeepCopy(), patch, client.DryRunAll) })
	expect.NoError(t, cluster.Patch(t.Context(), policy.DeepCopy(), patch, client.DryRunAll))
}
