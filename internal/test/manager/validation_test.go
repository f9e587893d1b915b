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
		name  = "crontabs.example.com"
		good  = `{hub: v1, spokes: [{version: v1beta1, rules: [{move: {from: .a, to: .b}}]}]}`
		paths = `{hub: v1, spokes: [{version: v1beta1, rules: [{move: {from: '%', to: .b}}]}]}`
	)
	path := func(path string) string { return strings.Replace(paths, "%", path, 1) }
	certificates := func(source string) string {
		return "{converter: {declarative: " + good + "}, certificates: " + source + "}"
	}
	cases := map[string]struct{ name, spec, want string }{
		"accepted":                                  {name, "{converter: {declarative: " + good + "}}", ""},
		"what is verified":                          {name, "{converter: {declarative: " + good + "}, verification: {samples: 0, apiServers: None, timeout: 10s}}", ""},
		"some API servers":                          {name, "{converter: {declarative: " + good + "}, verification: {apiServers: Some}}", "Unsupported value"},
		"too many patches":                          {name, "{converter: {declarative: " + good + "}, workload: {patches: [" + strings.Repeat("{patch: 'a: b'},", 17) + "]}}", "must have at most 16 items"},
		"a patch that is too long":                  {name, "{converter: {declarative: " + good + "}, workload: {patches: [{patch: '" + strings.Repeat("a", 16385) + "'}]}}", "may not be more than 16384"},
		"too many samples":                          {name, "{converter: {declarative: " + good + "}, verification: {samples: 10001}}", "should be less than or equal to 10000"},
		"samples taken once":                        {name, "{converter: {declarative: " + good + "}, verification: {resampleInterval: 0s}}", ""},
		"samples twice a day":                       {name, "{converter: {declarative: " + good + "}, verification: {resampleInterval: 12h}}", ""},
		"samples all the time":                      {name, "{converter: {declarative: " + good + "}, verification: {resampleInterval: 1m}}", "resampleInterval must be 0s, for never, or between 10m and 720h"},
		"no time to verify":                         {name, "{converter: {declarative: " + good + "}, verification: {timeout: 10ms}}", "timeout must be between 1s and 1h"},
		"no rules":                                  {name, "{converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}}", ""},
		"name without a group":                      {"crontabs", "{converter: {declarative: " + good + "}}", "must be the name of the CustomResourceDefinition"},
		"a kind of the operator":                    {"converterfleets.conversion-operator.io", "{converter: {declarative: " + good + "}}", "must not name a CustomResourceDefinition of this operator"},
		"a probe of the operator":                   {"conversionprobes.probe.conversion-operator.io", "{converter: {none: {}}}", "must not name a CustomResourceDefinition of this operator"},
		"a similar group":                           {"crontabs.my-conversion-operator.io", "{converter: {declarative: " + good + "}}", ""},
		"no converter":                              {name, "{converter: {}}", "set exactly one kind of converter"},
		"hub among the spokes":                      {name, "{converter: {declarative: {hub: v1, spokes: [{version: v1}]}}}", "a spoke's version must differ from the hub"},
		"no spokes":                                 {name, "{converter: {declarative: {hub: v1, spokes: []}}}", "should have at least 1 items"},
		"a spoke twice":                             {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2}, {version: v2}]}}}", "Duplicate value"},
		"no version name":                           {name, "{converter: {declarative: {hub: V1, spokes: [{version: v2}]}}}", "hub"},
		"a rule of no kind":                         {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{}]}]}}}", "set exactly one of move, format, default, values, drop, wrap, cast"},
		"a rule of two kinds":                       {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{move: {from: .a, to: .b}, format: {from: .c, template: '{d}', to: {d: .d}}}]}]}}}", "set exactly one of move, format, default, values, drop, wrap, cast"},
		"a table":                                   {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{values: {from: .a, to: .b, table: [{from: A, to: B}, {from: C, to: B}]}}]}]}}}", ""},
		"a table from one value to two":             {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{values: {from: .a, to: .b, table: [{from: A, to: B}, {from: A, to: C}]}}]}]}}}", ""},
		"a table with one pair twice":               {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{values: {from: .a, to: .b, table: [{from: A, to: B}, {from: A, to: B}]}}]}]}}}", "Duplicate value"},
		"a cast of a quantity":                      {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Quantity, unit: Mi}}]}]}}}", ""},
		"a quantity without a unit":                 {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Quantity}}]}]}}}", "set unit, such as Mi or 1"},
		"a quantity of another unit":                {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Quantity, unit: MB}}]}]}}}", "Unsupported value"},
		"a cast of a list":                          {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: List, separator: ','}}]}]}}}", ""},
		"a list without a separator":                {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: List}}]}]}}}", "set separator, such as a comma"},
		"a cast of YAML":                            {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: YAML}}]}]}}}", ""},
		"a unit of YAML":                            {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: YAML, unit: Mi}}]}]}}}", "set unit, such as Mi or 1"},
		"a cast of a time":                          {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Timestamp}}]}]}}}", ""},
		"a unit of seconds":                         {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Seconds, unit: m}}]}]}}}", "set unit, such as Mi or 1"},
		"an exclusion":                              {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{exclude: {to: '.a[*]', without: .b, values: [x]}}]}]}}}", ""},
		"an exclusion of nothing":                   {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{exclude: {without: .b}}]}]}}}", "set from, for a list of the spoke"},
		"an exclusion by nothing":                   {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{exclude: {to: '.a[*]'}}]}]}}}", "without"},
		"a drop":                                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{drop: {from: .a}}]}]}}}", ""},
		"a drop of nothing":                         {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{drop: {}}]}]}}}", "set from, for a field"},
		"a wrap":                                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{wrap: {from: .a, to: .b}}]}]}}}", ""},
		"a wrap in a field":                         {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{wrap: {from: .a, to: .b, field: f}}]}]}}}", ""},
		"an index of values":                        {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{index: {from: .a, to: .b, key: k, value: v}}]}]}}}", ""},
		"a cast":                                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Seconds}}]}]}}}", ""},
		"a cast as what":                            {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cast: {from: .a, to: .b, as: Roman}}]}]}}}", "Unsupported value"},
		"an index":                                  {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{index: {from: .a, to: .b, key: k}}]}]}}}", ""},
		"an index by nothing":                       {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{index: {from: .a, to: .b, key: ''}}]}]}}}", "index.key"},
		"expressions":                               {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}}}]}]}}}", ""},
		"bounds of expressions":                     {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}, bounds: {maxItems: 16}}}]}]}}}", ""},
		"bounds of nothing":                         {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}, bounds: {}}}]}]}}}", "cel.bounds"},
		"bounds without an effect":                  {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}, bounds: {maxItems: 1000}}}]}]}}}", "less than or equal to 128"},
		"expressions of nothing":                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: \"'x'\"}, backward: {a: self.b}, whenMissing: Evaluate}}]}]}}}", ""},
		"expressions when it rains":                 {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}, whenMissing: Compute}}]}]}}}", "cel.whenMissing"},
		"a group":                                   {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: ref, rules: [{move: {from: .a, to: .b}}]}], spokes: [{version: v2, rules: [{use: {group: ref, from: '.l[*]', to: '.l[*]'}}]}]}}}", ""},
		"a group of the whole object":               {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: aB-1, rules: [{move: {from: .a, to: .b}}]}], spokes: [{version: v2, rules: [{use: {group: aB-1}}]}]}}}", ""},
		"a group that uses another":                 {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: a, rules: [{use: {group: b, from: .a, to: .b}}]}, {name: b, rules: [{drop: {from: .a}}]}], spokes: [{version: v2}]}}}", ""},
		"a group twice":                             {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: a, rules: [{drop: {from: .a}}]}, {name: a, rules: [{drop: {from: .b}}]}], spokes: [{version: v2}]}}}", "Duplicate value"},
		"a group without rules":                     {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: a, rules: []}], spokes: [{version: v2}]}}}", "ruleGroups[0].rules"},
		"a group without a name":                    {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: '', rules: [{drop: {from: .a}}]}], spokes: [{version: v2}]}}}", "ruleGroups[0].name"},
		"a group with an invalid rule":              {name, "{converter: {declarative: {hub: v1, ruleGroups: [{name: a, rules: [{drop: {}}]}], spokes: [{version: v2}]}}}", "set from, for a field"},
		"a use of half a path":                      {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{use: {group: a, from: .a}}]}]}}}", "set from and to"},
		"a use of nothing":                          {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{use: {}}]}]}}}", "use.group"},
		"an expression of nothing":                  {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{cel: {from: {a: .a}, to: {b: .b}, forward: {b: ''}, backward: {a: self.b}}}]}]}}}", "cel.forward"},
		"a default":                                 {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{default: {to: .a, value: {b: [1]}}}]}]}}}", ""},
		"a default from metadata":                   {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{default: {to: .a, valueFrom: .metadata.namespace}}]}]}}}", ""},
		"a default from a label":                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{default: {to: .a, valueFrom: .metadata.uid}}]}]}}}", "Unsupported value"},
		"a default of two sides":                    {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{default: {from: .a, to: .a, value: 1}}]}]}}}", "set from, for a field"},
		"status is not preserved":                   {name, "{converter: {declarative: {hub: v1, preservedStatus: Refuse, spokes: [{version: v2}]}}}", ""},
		"status is preserved how":                   {name, "{converter: {declarative: {hub: v1, preservedStatus: Maybe, spokes: [{version: v2}]}}}", "Unsupported value"},
		"path with wildcard":                        {name, "{converter: {declarative: " + path(".a[*].b") + "}}", ""},
		"path with a quoted key":                    {name, "{converter: {declarative: " + path(`.metadata.labels["a.b/c"]`) + "}}", ""},
		"path without a dot":                        {name, "{converter: {declarative: " + path("a.b") + "}}", "from"},
		"path with an index":                        {name, "{converter: {declarative: " + path(".a[0]") + "}}", "from"},
		"a storage version":                         {name, "{converter: {declarative: " + good + "}, storageVersion: v1}", ""},
		"no storage version":                        {name, "{converter: {declarative: " + good + "}, storageVersion: 'V 1'}", "storageVersion"},
		"a version to remove":                       {name, "{converter: {declarative: " + good + "}, storageVersion: v1, retirement: [{version: v1beta1, action: Remove, after: 0s}]}", ""},
		"the storage is to go":                      {name, "{converter: {declarative: " + good + "}, storageVersion: v1, retirement: [{version: v1, action: Unserve}]}", "retirement must not name storageVersion"},
		"the storage is kept":                       {name, "{converter: {declarative: " + good + "}, storageVersion: v1, retirement: [{version: v1, action: Keep}]}", ""},
		"a version to go twice":                     {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1}, {version: v1}]}", "Duplicate value"},
		"a version to burn":                         {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1, action: Burn}]}", "Unsupported value"},
		"dependents are to be checked":              {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1, dependents: Check}]}", ""},
		"dependents are to be removed":              {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1, dependents: Remove}]}", "Unsupported value"},
		"after a long while":                        {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1, after: 87601h}]}", "after must be 87600h"},
		"an unknown mode":                           {name, "{converter: {declarative: " + good + "}, migration: {mode: Sometimes}}", "Unsupported value"},
		"a paced migration":                         {name, "{converter: {declarative: " + good + "}, migration: {suspend: true, maxWritesPerSecond: 1, concurrency: 256, verify: Full, fallback: [OldVersion, Status]}}", ""},
		"no writes":                                 {name, "{converter: {declarative: " + good + "}, migration: {maxWritesPerSecond: 0}}", "maxWritesPerSecond"},
		"too many writes":                           {name, "{converter: {declarative: " + good + "}, migration: {maxWritesPerSecond: 100001}}", "maxWritesPerSecond"},
		"nothing at once":                           {name, "{converter: {declarative: " + good + "}, migration: {concurrency: 0}}", "concurrency"},
		"too much at once":                          {name, "{converter: {declarative: " + good + "}, migration: {concurrency: 257}}", "concurrency"},
		"a doubtful check":                          {name, "{converter: {declarative: " + good + "}, migration: {verify: Some}}", "Unsupported value"},
		"no such way":                               {name, "{converter: {declarative: " + good + "}, migration: {fallback: [Force]}}", "Unsupported value"},
		"a way twice":                               {name, "{converter: {declarative: " + good + "}, migration: {fallback: [Status, Status]}}", "fallback names a way twice"},
		"drift is tolerated":                        {name, "{converter: {declarative: " + good + "}, drift: Tolerate}", ""},
		"it is orphaned":                            {name, "{converter: {declarative: " + good + "}, deletionPolicy: Orphan}", ""},
		"drift is ignored":                          {name, "{converter: {declarative: " + good + "}, drift: Ignore}", "Unsupported value"},
		"the words of a PersistentVolume":           {name, "{converter: {declarative: " + good + "}, deletionPolicy: Retain}", "Unsupported value"},
		"drift is only reported":                    {name, "{converter: {declarative: " + good + "}, drift: Report}", "Unsupported value"},
		"a version is only reported":                {name, "{converter: {declarative: " + good + "}, retirement: [{version: v1, action: Report}]}", "Unsupported value"},
		"it is paused":                              {name, "{converter: {declarative: " + good + "}, paused: true}", ""},
		"a minimum fidelity":                        {name, "{converter: {declarative: {hub: v1, minimumFidelity: Preserved, spokes: [{version: v2}]}}}", ""},
		"an unknown fidelity":                       {name, "{converter: {declarative: {hub: v1, minimumFidelity: Perfect, spokes: [{version: v2}]}}}", "Unsupported value"},
		"it is deleted":                             {name, "{converter: {declarative: " + good + "}, deletionPolicy: Delete}", "Unsupported value"},
		"no replicas":                               {name, "{converter: {declarative: " + good + "}, workload: {replicas: 0}}", "should be greater than or equal to 1"},
		"one replica":                               {name, "{converter: {declarative: " + good + "}, workload: {replicas: 1}}", ""},
		"a template without hole":                   {name, "{converter: {declarative: {hub: v1, spokes: [{version: v2, rules: [{format: {from: .c, template: 'x', to: {d: .d}}}]}]}}}", "template"},
		"an image":                                  {name, "{converter: {image: {reference: a}}}", ""},
		"all of an image":                           {name, "{converter: {image: {reference: a, command: [a], args: [b], env: [{name: A, value: b}], port: 1, path: /a/b.c/, certificateMountPath: /certs, serviceAccountName: a}, conversionReviewVersions: [v1beta1]}}", ""},
		"no image":                                  {name, "{converter: {image: {}}}", "image"},
		"a path without a slash":                    {name, "{converter: {image: {reference: a, path: convert}}}", "path"},
		"a path with a query":                       {name, "{converter: {image: {reference: a, path: '/convert?a=b'}}}", "path"},
		"a relative mount":                          {name, "{converter: {image: {reference: a, certificateMountPath: certs}}}", "certificateMountPath"},
		"reviews without a webhook":                 {name, "{converter: {none: {}, conversionReviewVersions: [v1]}}", "conversionReviewVersions must be empty unless image, service or url is set"},
		"an unknown review":                         {name, "{converter: {image: {reference: a}, conversionReviewVersions: [v2]}}", "Unsupported value"},
		"reviews of three versions":                 {name, "{converter: {image: {reference: a}, conversionReviewVersions: [v1, v1beta1, v1]}}", "at most 2"},
		"a Service":                                 {name, "{converter: {service: {namespace: a, name: b}}}", ""},
		"a Service without a name":                  {name, "{converter: {service: {namespace: a}}}", "name"},
		"a URL":                                     {name, "{converter: {url: 'https://example.com:8443/convert'}}", ""},
		"a URL without TLS":                         {name, "{converter: {url: 'http://example.com'}}", "url"},
		"a URL with a password":                     {name, "{converter: {url: 'https://a:b@example.com/'}}", "url"},
		"a URL with a query":                        {name, "{converter: {url: 'https://example.com/?a'}}", "url"},
		"none":                                      {name, "{converter: {none: {}}}", ""},
		"losses":                                    {name, "{converter: {none: {acceptedLosses: [.spec.a]}}}", ""},
		"losses that are no paths":                  {name, "{converter: {none: {acceptedLosses: [spec]}}}", "acceptedLosses"},
		"two kinds":                                 {name, "{converter: {none: {}, url: 'https://example.com'}}", "set exactly one kind of converter"},
		"a patch":                                   {name, "{converter: {none: {}}, workload: {patches: [{target: {kind: Deployment}, patch: x}]}}", ""},
		"an empty patch":                            {name, "{converter: {none: {}}, workload: {patches: [{target: {kind: Deployment}, patch: ''}]}}", "patch"},
		"an empty target":                           {name, "{converter: {none: {}}, workload: {patches: [{target: {}, patch: x}]}}", "target"},
		"the port of the metrics":                   {name, "{converter: {none: {}}, workload: {port: 8080}}", "choose another port"},
		"a port that is none":                       {name, "{converter: {none: {}}, workload: {port: 70000}}", "port"},
		"a constraint twice":                        {name, "{converter: {none: {}}, workload: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}", "Duplicate value"},
		"an affinity":                               {name, "{converter: {none: {}}, migration: {workload: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}}}", ""},
		"an affinity of the wrong type":             {name, "{converter: {none: {}}, migration: {workload: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: zone}}}}}", "spec.migration.workload.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"},
		"certificates: nothing":                     {name, certificates("{}"), "set exactly one source of certificates"},
		"certificates: two sources":                 {name, certificates("{selfManaged: {}, secret: {name: theirs}}"), "set exactly one source of certificates"},
		"certificates: self-managed":                {name, certificates("{selfManaged: {}}"), ""},
		"certificates: all of it":                   {name, certificates("{selfManaged: {caDuration: 8760h, duration: 720h, renewBefore: 240h, rotationTrigger: now}}"), ""},
		"certificates: a unit that is none":         {name, certificates("{selfManaged: {duration: 90d}}"), "duration"},
		"certificates: a short duration":            {name, certificates("{selfManaged: {duration: 30m}}"), "duration must be 1h or more"},
		"certificates: longer than Go can count":    {name, certificates("{selfManaged: {duration: 9999999h}}"), "duration"},
		"a retirement after more than Go can count": {name, "{converter: {none: {}}, retirement: [{version: v2, after: 2000000h2000000h}]}", "after"},
		"samples less often than Go can count":      {name, "{converter: {none: {}}, verification: {resampleInterval: 9999999h}}", "resampleInterval"},
		"a longer timeout than Go can count":        {name, "{converter: {none: {}}, verification: {timeout: 9999999h}}", "timeout"},
		"certificates: a short authority":           {name, certificates("{selfManaged: {caDuration: 100h, duration: 50h}}"), "caDuration must be at least three times duration"},
		"certificates: an authority, too short":     {name, certificates("{selfManaged: {caDuration: 6000h}}"), "caDuration must be at least three times duration"},
		"certificates: renewed after it expired":    {name, certificates("{selfManaged: {renewBefore: 2160h}}"), "renewBefore must be shorter than duration"},
		"certificates: a long authority":            {name, certificates("{selfManaged: {caDuration: 876001h}}"), "876000h (100 years) or less"},
		"certificates: renewed before it is issued": {name, certificates("{selfManaged: {duration: 24h, renewBefore: 24h}}"), "renewBefore must be shorter than duration"},
		"certificates: renewed in the last moment":  {name, certificates("{selfManaged: {renewBefore: 1m}}"), "renewBefore must be 10m or more"},
		"certificates: an issuer":                   {name, certificates("{certManager: {issuerRef: {name: company}}}"), ""},
		"certificates: no issuer":                   {name, certificates("{certManager: {}}"), "issuerRef"},
		"certificates: a Secret":                    {name, certificates("{secret: {name: theirs}}"), ""},
		"certificates: a Secret without a name":     {name, certificates("{secret: {name: ''}}"), "name"},
		"certificates: injected":                    {name, certificates("{injected: {secretName: theirs}}"), ""},
		"certificates: injected, and no Secret":     {name, certificates("{injected: {}}"), "certificates.injected.secretName must name the Secret"},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			policy := &unstructured.Unstructured{}
			unmarshal(t, "apiVersion: conversion-operator.io/v1alpha1\nkind: ConversionPolicy\nmetadata: {name: "+c.name+"}\nspec: "+c.spec, &policy.Object)
			checkRefusal(t, policy, c.want)
		})
	}
}

// checkRefusal creates a policy in a dry run, and expects that the API server refuses it with the
// wanted message, or accepts it if that is empty.
func checkRefusal(t *testing.T, policy client.Object, want string) {
	t.Helper()
	err := cluster.Create(t.Context(), policy, client.DryRunAll)
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want a refusal with %q", err, want)
	}
}

// TestDefaults: the API server stores defaults only for what the operator may do to objects and
// CustomResourceDefinitions. It stores none in the converter or the source of certificates.
func TestDefaults(t *testing.T) {
	t.Parallel()
	stored := "drift: Repair, deletionPolicy: Block, migration: {mode: OnTrigger}"
	for _, spec := range []string{
		"converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}",
		"converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}, workload: {}, verification: {}",
		"converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}, certificates: {selfManaged: {}}",
		"converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}, certificates: {certManager: {issuerRef: {name: company}}}",
		"converter: {image: {reference: converter}}",
		"converter: {service: {namespace: theirs, name: converter}}",
		"converter: {url: 'https://example.com/convert'}",
		"converter: {none: {}}",
	} {
		t.Run(spec, func(t *testing.T) {
			policy, want := parsePolicy(t, "defaults.example.com", spec), parsePolicy(t, "defaults.example.com", spec+", "+stored)
			expect.NoError(t, cluster.Create(t.Context(), policy, client.DryRunAll))
			expect.Equal(t, "the stored spec", want.Object["spec"], policy.Object["spec"])
		})
	}
}

// TestApplyReplaces: server-side apply of a manifest with another converter, or another source of
// certificates, replaces the previous one.
func TestApplyReplaces(t *testing.T) {
	t.Parallel()
	const rules = "converter: {declarative: {hub: v1, spokes: [{version: v1beta1}]}}"
	for field, specs := range map[string][]string{
		"converter": {
			rules,
			"converter: {image: {reference: converter}}",
			"converter: {service: {namespace: theirs, name: converter}}",
			"converter: {url: 'https://example.com/convert'}",
			"converter: {none: {}}",
		},
		"certificates": {
			rules,
			rules + ", certificates: {selfManaged: {}}",
			rules + ", certificates: {certManager: {issuerRef: {name: company}}}",
			rules + ", certificates: {secret: {name: theirs}}",
			rules + ", certificates: {injected: {secretName: theirs}}",
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
