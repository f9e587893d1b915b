//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
}

// TestAdmission checks every validation rule of ConversionPolicies on the API server, with an
// accepted and a refused policy.
func TestAdmission(t *testing.T) {
	t.Parallel()
	const (
		name = "crontabs.example.com"
		good = `{hub: v1, spokes: [{version: v1beta1, rules: [{move: {from: .a, to: .b}}]}]}`
		// declared is the begin of a spec with rules.
		declared = "{converter: {type: Declarative, declarative: " + good + "}"
		paths    = `{hub: v1, spokes: [{version: v1beta1, rules: [{move: {from: '%', to: .b}}]}]}`
	)
	path := func(path string) string { return strings.Replace(paths, "%", path, 1) }
	certificates := func(source string) string {
		return declared + ", workload: {type: Dedicated}, certificates: " + source + "}"
	}
	type admission struct{ name, spec, want string }
	cases := map[string]admission{
		"accepted":                                  {name, declared + "}", ""},
		"what is verified":                          {name, declared + ", verification: {samples: 0, apiServers: None, timeout: 10s}}", ""},
		"some API servers":                          {name, declared + ", verification: {apiServers: Some}}", "Unsupported value"},
		"too many patches":                          {name, declared + ", workload: {type: Dedicated, dedicated: {patches: [" + strings.Repeat("{patch: 'a: b'},", 17) + "]}}}", "must have at most 16 items"},
		"a patch that is too long":                  {name, declared + ", workload: {type: Dedicated, dedicated: {patches: [{patch: '" + strings.Repeat("a", 16385) + "'}]}}}", "may not be more than 16384"},
		"too many samples":                          {name, declared + ", verification: {samples: 10001}}", "should be less than or equal to 10000"},
		"samples taken once":                        {name, declared + ", verification: {resampleInterval: 0s}}", ""},
		"samples twice a day":                       {name, declared + ", verification: {resampleInterval: 12h}}", ""},
		"samples all the time":                      {name, declared + ", verification: {resampleInterval: 1m}}", "resampleInterval must be 0s, for never, or between 10m and 720h"},
		"no time to verify":                         {name, declared + ", verification: {timeout: 10ms}}", "timeout must be between 1s and 1h"},
		"name without a group":                      {"crontabs", declared + "}", "must be the name of the CustomResourceDefinition"},
		"a kind of the operator":                    {"converterfleets.conversion-operator.io", declared + "}", "must not name a CustomResourceDefinition of this operator"},
		"a probe of the operator":                   {"conversionprobes.probe.conversion-operator.io", "{converter: {type: None}}", "must not name a CustomResourceDefinition of this operator"},
		"a similar group":                           {"crontabs.my-conversion-operator.io", declared + "}", ""},
		"no converter":                              {name, "{converter: {}}", "spec.converter.type: Required value"},
		"hub among the spokes":                      {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1}]}}}", "a spoke's version must differ from the hub"},
		"no spokes":                                 {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: []}}}", "should have at least 1 items"},
		"a spoke twice":                             {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2}, {version: v2}]}}}", "Duplicate value"},
		"no version name":                           {name, "{converter: {type: Declarative, declarative: {hub: V1, spokes: [{version: v2}]}}}", "hub"},
		"a rule of no kind":                         {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2, rules: [{}]}]}}}", "set exactly one of move, each, format, default, values, drop, cast"},
		"a rule of two kinds":                       {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2, rules: [{move: {from: .a, to: .b}, format: {from: .c, template: '{d}', to: {d: .d}}}]}]}}}", "set exactly one of move, each, format, default, values, drop, cast"},
		"a group":                                   {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: ref, rules: [{move: {from: .a, to: .b}}]}], spokes: [{version: v2, rules: [{use: {group: ref, from: '.l[*]', to: '.l[*]'}}]}]}}}", ""},
		"a group of the whole object":               {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: aB-1, rules: [{move: {from: .a, to: .b}}]}], spokes: [{version: v2, rules: [{use: {group: aB-1}}]}]}}}", ""},
		"a group that uses another":                 {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: a, rules: [{use: {group: b, from: .a, to: .b}}]}, {name: b, rules: [{drop: {from: .a}}]}], spokes: [{version: v2}]}}}", ""},
		"a group twice":                             {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: a, rules: [{drop: {from: .a}}]}, {name: a, rules: [{drop: {from: .b}}]}], spokes: [{version: v2}]}}}", "Duplicate value"},
		"a group without rules":                     {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: a, rules: []}], spokes: [{version: v2}]}}}", "ruleGroups[0].rules"},
		"a group without a name":                    {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: '', rules: [{drop: {from: .a}}]}], spokes: [{version: v2}]}}}", "ruleGroups[0].name"},
		"a group of no rules":                       {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: a, rules: []}], spokes: [{version: v2}]}}}", "should have at least 1 items"},
		"a group with an invalid rule":              {name, "{converter: {type: Declarative, declarative: {hub: v1, ruleGroups: [{name: a, rules: [{drop: {}}]}], spokes: [{version: v2}]}}}", "set from, for a field"},
		"a use of half a path":                      {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2, rules: [{use: {group: a, from: .a}}]}]}}}", "set from and to"},
		"a use of nothing":                          {name, "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2, rules: [{use: {}}]}]}}}", "use.group"},
		"status is not preserved":                   {name, "{converter: {type: Declarative, declarative: {hub: v1, preservedStatus: Refuse, spokes: [{version: v2}]}}}", ""},
		"status is preserved how":                   {name, "{converter: {type: Declarative, declarative: {hub: v1, preservedStatus: Maybe, spokes: [{version: v2}]}}}", "Unsupported value"},
		"path with wildcard":                        {name, "{converter: {type: Declarative, declarative: " + path(".a[*].b") + "}}", ""},
		"path with a quoted key":                    {name, "{converter: {type: Declarative, declarative: " + path(`.metadata.labels["a.b/c"]`) + "}}", ""},
		"path without a dot":                        {name, "{converter: {type: Declarative, declarative: " + path("a.b") + "}}", "from"},
		"path with an index":                        {name, "{converter: {type: Declarative, declarative: " + path(".a[0]") + "}}", "from"},
		"a storage version":                         {name, declared + ", storageVersion: v1}", ""},
		"no storage version":                        {name, declared + ", storageVersion: 'V 1'}", "storageVersion"},
		"a version to remove":                       {name, declared + ", storageVersion: v1, retirement: [{version: v1beta1, action: Remove, after: 0s}]}", ""},
		"the storage is to go":                      {name, declared + ", storageVersion: v1, retirement: [{version: v1, action: Unserve}]}", "retirement must not name storageVersion"},
		"the storage is kept":                       {name, declared + ", storageVersion: v1, retirement: [{version: v1, action: Keep}]}", ""},
		"a version to go twice":                     {name, declared + ", retirement: [{version: v1}, {version: v1}]}", "Duplicate value"},
		"a version to burn":                         {name, declared + ", retirement: [{version: v1, action: Burn}]}", "Unsupported value"},
		"dependents are to be checked":              {name, declared + ", retirement: [{version: v1, dependents: Check}]}", ""},
		"dependents are to be removed":              {name, declared + ", retirement: [{version: v1, dependents: Remove}]}", "Unsupported value"},
		"after a long while":                        {name, declared + ", retirement: [{version: v1, after: 87601h}]}", "after must be 87600h"},
		"an unknown mode":                           {name, declared + ", migration: {mode: Sometimes}}", "Unsupported value"},
		"a paced migration":                         {name, declared + ", migration: {suspend: true, maxWritesPerSecond: 1, verify: Full, fallback: [OldVersion, Status]}}", ""},
		"no writes":                                 {name, declared + ", migration: {maxWritesPerSecond: 0}}", "maxWritesPerSecond"},
		"too many writes":                           {name, declared + ", migration: {maxWritesPerSecond: 100001}}", "maxWritesPerSecond"},
		"a doubtful check":                          {name, declared + ", migration: {verify: Some}}", "Unsupported value"},
		"no such way":                               {name, declared + ", migration: {fallback: [Force]}}", "Unsupported value"},
		"a way twice":                               {name, declared + ", migration: {fallback: [Status, Status]}}", "fallback names a way twice"},
		"drift is tolerated":                        {name, declared + ", drift: Tolerate}", ""},
		"it is orphaned":                            {name, declared + ", deletionPolicy: Orphan}", ""},
		"drift is ignored":                          {name, declared + ", drift: Ignore}", "Unsupported value"},
		"the words of a PersistentVolume":           {name, declared + ", deletionPolicy: Retain}", "Unsupported value"},
		"it is paused":                              {name, declared + ", paused: true}", ""},
		"a minimum fidelity":                        {name, "{converter: {type: Declarative, declarative: {hub: v1, minimumFidelity: Preserved, spokes: [{version: v2}]}}}", ""},
		"an unknown fidelity":                       {name, "{converter: {type: Declarative, declarative: {hub: v1, minimumFidelity: Perfect, spokes: [{version: v2}]}}}", "Unsupported value"},
		"no replicas":                               {name, declared + ", workload: {type: Dedicated, dedicated: {replicas: 0}}}", "should be greater than or equal to 1"},
		"one replica":                               {name, declared + ", workload: {type: Dedicated, dedicated: {replicas: 1}}}", ""},
		"all of an image":                           {name, "{converter: {type: Image, image: {reference: a, command: [a], args: [b], env: [{name: A, value: b}], port: 1, path: /a/b.c/, certificateMountPath: /certs, serviceAccountName: a}, conversionReviewVersions: [v1beta1]}}", ""},
		"no image":                                  {name, "{converter: {type: Image, image: {}}}", "image"},
		"a path without a slash":                    {name, "{converter: {type: Image, image: {reference: a, path: convert}}}", "path"},
		"a path with a query":                       {name, "{converter: {type: Image, image: {reference: a, path: '/convert?a=b'}}}", "path"},
		"a relative mount":                          {name, "{converter: {type: Image, image: {reference: a, certificateMountPath: certs}}}", "certificateMountPath"},
		"reviews without a webhook":                 {name, "{converter: {type: None, none: {}, conversionReviewVersions: [v1]}}", "conversionReviewVersions must be empty unless type is Image, Service or URL"},
		"an unknown review":                         {name, "{converter: {type: Image, image: {reference: a}, conversionReviewVersions: [v2]}}", "Unsupported value"},
		"reviews of three versions":                 {name, "{converter: {type: Image, image: {reference: a}, conversionReviewVersions: [v1, v1beta1, v1]}}", "at most 2"},
		"a Service without a name":                  {name, "{converter: {type: Service, service: {namespace: a}}}", "name"},
		"a URL":                                     {name, "{converter: {type: URL, url: {url: 'https://example.com:8443/convert'}}}", ""},
		"a URL without TLS":                         {name, "{converter: {type: URL, url: {url: 'http://example.com'}}}", "url"},
		"a URL with a password":                     {name, "{converter: {type: URL, url: {url: 'https://a:b@example.com/'}}}", "url"},
		"a URL with a query":                        {name, "{converter: {type: URL, url: {url: 'https://example.com/?a'}}}", "url"},
		"losses":                                    {name, "{converter: {type: None, none: {acceptedLosses: [.spec.a]}}}", ""},
		"losses that are no paths":                  {name, "{converter: {type: None, none: {acceptedLosses: [spec]}}}", "acceptedLosses"},
		"an unknown type":                           {name, "{converter: {type: Wasm}}", "spec.converter.type: Unsupported value"},
		"a type and no rules":                       {name, "{converter: {type: Declarative}}", "declarative must be set if type is Declarative, and only then"},
		"a type and no image":                       {name, "{converter: {type: Image}}", "image must be set if type is Image, and only then"},
		"a type and no Service":                     {name, "{converter: {type: Service}}", "service must be set if type is Service, and only then"},
		"a type and no URL":                         {name, "{converter: {type: URL}}", "url must be set if type is URL, and only then"},
		"rules of another type":                     {name, "{converter: {type: None, declarative: " + good + "}}", "declarative must be set if type is Declarative, and only then"},
		"an image of another type":                  {name, "{converter: {type: None, image: {reference: a}}}", "image must be set if type is Image, and only then"},
		"a Service of another type":                 {name, "{converter: {type: None, service: {namespace: a, name: b}}}", "service must be set if type is Service, and only then"},
		"a URL of another type":                     {name, "{converter: {type: None, url: {url: 'https://example.com'}}}", "url must be set if type is URL, and only then"},
		"losses of another type":                    {name, "{converter: {type: Image, image: {reference: a}, none: {acceptedLosses: [.spec.a]}}}", "none must be empty unless type is None"},
		"a URL as text":                             {name, "{converter: {type: URL, url: 'https://example.com'}}", "spec.converter.url"},
		"a fleet without a name":                    {name, declared + ", workload: {type: Fleet, fleet: {}}}", "spec.workload.fleet.name: Required value"},
		"a place without a type":                    {name, declared + ", workload: {}}", "spec.workload.type: Required value"},
		"another place":                             {name, declared + ", workload: {type: Node}}", "spec.workload.type: Unsupported value"},
		"dedicated pods in a fleet":                 {name, declared + ", workload: {type: Fleet, dedicated: {replicas: 2}}}", "dedicated must be empty unless type is Dedicated"},
		"a fleet of dedicated pods":                 {name, declared + ", workload: {type: Dedicated, fleet: {name: blue}}}", "fleet must be empty unless type is Fleet"},
		"an image in a fleet":                       {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Fleet}}", "workload.type must be Dedicated if converter.type is Image"},
		"pods of no converter":                      {name, "{converter: {type: None}, workload: {type: Dedicated}}", "workload must be empty unless converter.type is Declarative or Image"},
		"pods of a Service":                         {name, "{converter: {type: Service, service: {namespace: a, name: b}}, workload: {type: Dedicated}}", "workload must be empty unless converter.type is Declarative or Image"},
		"a patch":                                   {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {patches: [{target: {kind: Deployment}, patch: x}]}}}", ""},
		"an empty patch":                            {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {patches: [{target: {kind: Deployment}, patch: ''}]}}}", "patch"},
		"an empty target":                           {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {patches: [{target: {}, patch: x}]}}}", "target"},
		"the port of the metrics":                   {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {port: 8080}}}", "choose another port"},
		"a port that is none":                       {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {port: 70000}}}", "port"},
		"a constraint twice":                        {name, "{converter: {type: Image, image: {reference: a}}, workload: {type: Dedicated, dedicated: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}}", "Duplicate value"},
		"an affinity":                               {name, "{converter: {type: None}, migration: {workload: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}}}", ""},
		"an affinity of the wrong type":             {name, "{converter: {type: None}, migration: {workload: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: zone}}}}}", "spec.migration.workload.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"},
		"certificates: nothing":                     {name, certificates("{}"), "spec.certificates.type: Required value"},
		"certificates: another type":                {name, certificates("{type: ACME}"), "spec.certificates.type: Unsupported value"},
		"certificates: settings of another type":    {name, certificates("{type: Secret, selfManaged: {}, secret: {name: theirs}}"), "selfManaged must be empty unless type is SelfManaged"},
		"certificates: an issuer of another type":   {name, certificates("{type: SelfManaged, certManager: {issuerRef: {name: company}}}"), "certManager must be set if type is CertManager, and only then"},
		"certificates: a Secret of another type":    {name, certificates("{type: SelfManaged, secret: {name: theirs}}"), "secret must be set if type is Secret, and only then"},
		"certificates: injected by another type":    {name, certificates("{type: SelfManaged, injected: {secretName: theirs}}"), "injected must be empty unless type is Injected"},
		"certificates: a type and no Secret":        {name, certificates("{type: Secret}"), "secret must be set if type is Secret, and only then"},
		"certificates: of a fleet":                  {name, declared + ", workload: {type: Fleet}, certificates: {type: SelfManaged}}", "certificates must be empty unless workload.type is Dedicated"},
		"certificates: of the default fleet":        {name, declared + ", certificates: {type: SelfManaged}}", "certificates must be empty unless workload.type is Dedicated"},
		"certificates: of an image":                 {name, "{converter: {type: Image, image: {reference: a}}, certificates: {type: SelfManaged}}", ""},
		"certificates: injected, for a Service":     {name, "{converter: {type: Service, service: {namespace: a, name: b}}, certificates: {type: Injected}}", ""},
		"certificates: injected without a name":     {name, certificates("{type: Injected, injected: {}}"), "spec.certificates.injected.secretName: Required value"},
		"certificates: all of it":                   {name, certificates("{type: SelfManaged, selfManaged: {caDuration: 8760h, duration: 720h, renewBefore: 240h, rotationTrigger: now}}"), ""},
		"certificates: a unit that is none":         {name, certificates("{type: SelfManaged, selfManaged: {duration: 90d}}"), "duration"},
		"certificates: a short duration":            {name, certificates("{type: SelfManaged, selfManaged: {duration: 30m}}"), "duration must be 1h or more"},
		"certificates: longer than Go can count":    {name, certificates("{type: SelfManaged, selfManaged: {duration: 9999999h}}"), "duration"},
		"a retirement after more than Go can count": {name, "{converter: {type: None}, retirement: [{version: v2, after: 2000000h2000000h}]}", "after"},
		"samples less often than Go can count":      {name, "{converter: {type: None}, verification: {resampleInterval: 9999999h}}", "resampleInterval"},
		"a longer timeout than Go can count":        {name, "{converter: {type: None}, verification: {timeout: 9999999h}}", "timeout"},
		"certificates: a short authority":           {name, certificates("{type: SelfManaged, selfManaged: {caDuration: 100h, duration: 50h}}"), "caDuration must be at least three times duration"},
		"certificates: an authority, too short":     {name, certificates("{type: SelfManaged, selfManaged: {caDuration: 6000h}}"), "caDuration must be at least three times duration"},
		"certificates: renewed after it expired":    {name, certificates("{type: SelfManaged, selfManaged: {renewBefore: 2160h}}"), "renewBefore must be shorter than duration"},
		"certificates: a long authority":            {name, certificates("{type: SelfManaged, selfManaged: {caDuration: 876001h}}"), "876000h (100 years) or less"},
		"certificates: renewed before it is issued": {name, certificates("{type: SelfManaged, selfManaged: {duration: 24h, renewBefore: 24h}}"), "renewBefore must be shorter than duration"},
		"certificates: renewed in the last moment":  {name, certificates("{type: SelfManaged, selfManaged: {renewBefore: 1m}}"), "renewBefore must be 10m or more"},
		"certificates: no issuer":                   {name, certificates("{type: CertManager}"), "certManager must be set if type is CertManager, and only then"},
		"certificates: a Secret without a name":     {name, certificates("{type: Secret, secret: {name: ''}}"), "name"},
		"certificates: injected, and no Secret":     {name, certificates("{type: Injected}"), "certificates.injected must name the Secret"},
	}
	rules := func(rules string) string {
		return "{converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v2, rules: [" + rules + "]}]}}}"
	}
	for _, kind := range rulecases.All(t) {
		for _, of := range kind.Conversions {
			cases[kind.Name+": "+of.Name] = admission{name, rules(string(of.Rules)), ""}
		}
		for _, one := range kind.Admission {
			cases[kind.Name+": "+one.Name] = admission{name, rules(string(one.Rule)), one.Says}
		}
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			policy := &unstructured.Unstructured{}
			unmarshal(t, "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: "+c.name+"}\nspec: "+c.spec, &policy.Object)
			err := cluster.Create(t.Context(), policy, client.DryRunAll)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want a refusal with %q", err, c.want)
			}
		})
	}
}

// TestDefaults: the API server stores defaults only for what the operator may do to objects and
// CustomResourceDefinitions. It stores none in the converter or the source of certificates.
func TestDefaults(t *testing.T) {
	t.Parallel()
	stored := "drift: Repair, deletionPolicy: Block, migration: {mode: OnTrigger}"
	for _, spec := range []string{
		"converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1}]}}",
		"converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1}]}}, workload: {type: Fleet}, verification: {}",
		"converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1}]}}, workload: {type: Dedicated}, certificates: {type: SelfManaged}",
		"converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1}]}}, workload: {type: Dedicated}, certificates: {type: CertManager, certManager: {issuerRef: {name: company}}}",
		"converter: {type: Image, image: {reference: converter}}",
		"converter: {type: Service, service: {namespace: theirs, name: converter}}",
		"converter: {type: URL, url: {url: 'https://example.com/convert'}}",
		"converter: {type: None}",
	} {
		t.Run(spec, func(t *testing.T) {
			policy, want := parsePolicy(t, "defaults.example.com", spec), parsePolicy(t, "defaults.example.com", spec+", "+stored)
			expect.NoError(t, cluster.Create(t.Context(), policy, client.DryRunAll))
			expect.Equal(t, "the stored spec", want.Object["spec"], policy.Object["spec"])
		})
	}
}

// TestApplyReplaces: server-side apply of a manifest with another converter, source of certificates
// or place of the pods replaces the previous one.
func TestApplyReplaces(t *testing.T) {
	t.Parallel()
	const rules = "converter: {type: Declarative, declarative: {hub: v1, spokes: [{version: v1beta1}]}}"
	for field, specs := range map[string][]string{
		"converter": {
			rules,
			"converter: {type: Image, image: {reference: converter}}",
			"converter: {type: Service, service: {namespace: theirs, name: converter}}",
			"converter: {type: URL, url: {url: 'https://example.com/convert'}}",
			"converter: {type: None}",
		},
		"certificates": {
			rules,
			rules + ", workload: {type: Dedicated}, certificates: {type: SelfManaged}",
			rules + ", workload: {type: Dedicated}, certificates: {type: CertManager, certManager: {issuerRef: {name: company}}}",
			rules + ", workload: {type: Dedicated}, certificates: {type: Secret, secret: {name: theirs}}",
			rules + ", workload: {type: Dedicated}, certificates: {type: Injected, injected: {secretName: theirs}}",
		},
		"workload": {
			rules,
			rules + ", workload: {type: Fleet, fleet: {name: blue}}",
			rules + ", workload: {type: Dedicated, dedicated: {priorityClassName: system-cluster-critical}}",
		},
	} {
		t.Run(field, func(t *testing.T) {
			name := field + ".replaces.example.com"
			t.Cleanup(func() {
				expect.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), parsePolicy(t, name, rules)))
			})
			for _, from := range specs {
				for _, to := range specs {
					applyPolicy(t, name, from)
					got, want := applyPolicy(t, name, to), parsePolicy(t, name, to)
					gotField, _, _ := unstructured.NestedFieldNoCopy(got.Object, "spec", field)
					wantField, _, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", field)
					expect.Equal(t, fmt.Sprintf("after {%s}, the result of {%s}", from, to), wantField, gotField)
				}
			}
		})
	}
}

func parsePolicy(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	policy := &unstructured.Unstructured{}
	unmarshal(t, "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: "+name+"}\nspec: {"+spec+"}", &policy.Object)
	return policy
}

// applyPolicy applies a policy on the server, as an installer does.
func applyPolicy(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	policy := parsePolicy(t, name, spec)
	if err := cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(policy), client.FieldOwner("installer")); err != nil {
		t.Fatalf("{%s} is refused: %v", spec, err)
	}
	return policy
}
