// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The label and the annotation of what the operator creates for a policy.
const (
	managedByLabel, managedBy = "app.kubernetes.io/managed-by", "conversion-operator"
	policyAnnotation          = "conversion-operator.io/policy"
)

// admission is what webhook configurations, admission policies and their bindings have in common,
// at all of their versions.
type admission struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Webhooks        []struct {
		Name        string `json:"name"`
		MatchPolicy string `json:"matchPolicy"`
		Rules       []rule `json:"rules"`
	} `json:"webhooks"`
	Spec struct {
		ParamKind        *metav1.TypeMeta `json:"paramKind"`
		MatchConstraints *matchResources  `json:"matchConstraints"`
		MatchResources   *matchResources  `json:"matchResources"`
	} `json:"spec"`
}

type matchResources struct {
	MatchPolicy          string `json:"matchPolicy"`
	ResourceRules        []rule `json:"resourceRules"`
	ExcludeResourceRules []rule `json:"excludeResourceRules"`
}

type rule struct {
	APIGroups     []string `json:"apiGroups"`
	APIVersions   []string `json:"apiVersions"`
	Resources     []string `json:"resources"`
	Operations    []string `json:"operations"`
	Scope         string   `json:"scope"`
	ResourceNames []string `json:"resourceNames"`
}

// Admission returns the dependents in a webhook configuration, an admission policy, or a binding.
func (t *Target) Admission(content []byte) ([]Dependent, error) {
	var a admission
	if err := json.Unmarshal(content, &a); err != nil {
		return nil, err
	}
	if t.ownedByOperator(&a.Metadata) {
		return nil, nil
	}
	object := Object{APIVersion: a.APIVersion, Kind: a.Kind, Name: a.Metadata.Name}
	var found []Dependent
	for i, webhook := range a.Webhooks {
		path := fmt.Sprintf(".webhooks[%d].rules", i)
		for _, dependent := range t.rules(object, path, webhook.Rules, webhook.MatchPolicy, "API servers no longer call the webhook "+webhook.Name) {
			dependent.Dependency = AdmissionWebhook
			dependent.Cure += "; the webhook must accept objects of that version"
			found = append(found, dependent)
		}
	}
	if kind := a.Spec.ParamKind; kind != nil {
		if version, names := t.Names(kind.APIVersion, kind.Kind); names {
			found = append(found, Dependent{
				Dependency: AdmissionPolicy, Impact: Breaks, Object: object, Version: version, Field: ".spec.paramKind.apiVersion",
				Effect: "API servers cannot read the parameters of the policy, and refuse the requests, unless its failurePolicy is Ignore",
				Cure:   fmt.Sprintf("change it to %s, and the expressions that read parameters", t.APIVersion(t.To)),
			})
		}
	}
	for _, part := range []struct {
		name  string
		match *matchResources
	}{{"matchConstraints", a.Spec.MatchConstraints}, {"matchResources", a.Spec.MatchResources}} {
		if part.match != nil {
			found = append(found, t.matched(object, ".spec."+part.name, part.match)...)
		}
	}
	return found, nil
}

// ownedByOperator reports that the operator wrote a configuration for the policy of the kind, by
// which API servers refuse objects that are too large. It changes that with the versions.
func (t *Target) ownedByOperator(configuration *metav1.ObjectMeta) bool {
	return configuration.Labels[managedByLabel] == managedBy && configuration.Annotations[policyAnnotation] == t.CRD
}

func (t *Target) matched(object Object, path string, match *matchResources) []Dependent {
	applied := t.rules(object, path+".resourceRules", match.ResourceRules, match.MatchPolicy, "the policy no longer applies")
	for i := range applied {
		applied[i].Cure += "; its expressions then read objects of that version"
	}
	excluded := t.rules(object, path+".excludeResourceRules", match.ExcludeResourceRules, match.MatchPolicy, "the policy applies to what the rule excluded")
	found := slices.Concat(applied, excluded)
	for i := range found {
		found[i].Dependency = AdmissionPolicy
	}
	return found
}

// rules returns the rules that match the kind only at versions that go, unless other rules of the
// list match the same requests at a version that stays.
//
// API servers try a rule with matchPolicy Equivalent, the default, with each version in
// spec.versions, also with those that are not served: such a rule ends with the removal of the
// version. With Exact, a rule only matches requests for the version: it ends when the version is
// no longer served.
func (t *Target) rules(object Object, path string, rules []rule, policy, effect string) []Dependent {
	stays := map[string]bool{}
	for i := range rules {
		if t.matches(&rules[i]) && t.namesStaying(&rules[i]) {
			for _, request := range t.requests(&rules[i]) {
				stays[request] = true
			}
		}
	}
	var found []Dependent
	for i := range rules {
		version := slices.IndexFunc(rules[i].APIVersions, t.Goes)
		lost := slices.ContainsFunc(t.requests(&rules[i]), func(request string) bool {
			all, _, _ := strings.Cut(request, ":")
			return !stays[request] && !stays[all+":"]
		})
		if version < 0 || !t.matches(&rules[i]) || t.namesStaying(&rules[i]) || !lost {
			continue
		}
		when := "once the version is removed, "
		if policy == "Exact" {
			when = "the rule matches only requests for the version, by matchPolicy Exact; once it is not served, "
		}
		found = append(found, Dependent{
			Impact: Breaks, Object: object, Version: rules[i].APIVersions[version],
			Field:  fmt.Sprintf("%s[%d].apiVersions", path, i),
			Effect: when + effect,
			Cure:   fmt.Sprintf("add %s to apiVersions", t.To),
		})
	}
	return found
}

func (t *Target) matches(r *rule) bool {
	if r.Scope == "Namespaced" && !t.Namespaced || r.Scope == "Cluster" && t.Namespaced {
		return false
	}
	return containsOrAll(r.APIGroups, t.Group) && slices.ContainsFunc(r.Resources, func(resource string) bool {
		name, _, _ := strings.Cut(resource, "/")
		return name == "*" || name == t.Plural
	})
}

func (t *Target) namesStaying(r *rule) bool {
	return slices.ContainsFunc(r.APIVersions, func(version string) bool { return version == "*" || slices.Contains(t.stay, version) })
}

// requests returns keys of the kinds of requests that a rule matches: an operation on the resource
// or a subresource, for all names or for certain ones.
func (t *Target) requests(r *rule) []string {
	operations := r.Operations
	if slices.Contains(operations, "*") {
		operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
	}
	var keys []string
	for _, resource := range r.Resources {
		name, sub, _ := strings.Cut(resource, "/")
		if name != "*" && name != t.Plural {
			continue
		}
		subresources := []string{sub}
		if sub == "*" {
			subresources = []string{"", "status", "scale"}
		}
		for _, operation := range operations {
			for _, subresource := range subresources {
				keys = append(keys, operation+"/"+subresource+":"+strings.Join(r.ResourceNames, ","))
			}
		}
	}
	return keys
}

func containsOrAll(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}
