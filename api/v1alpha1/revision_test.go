// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// ruleFields are the fields of each kind of rule, by the API revision that added them. cast.unit,
// cast.separator, wrap.field and index.value need none of their own: a version without them refuses the rules that
// have them, because it lacks as: Quantity and List, requires default.value, and the types of the fields do not fit.
// cel.bounds needs none, either: without it, larger values are computed too, and come back all the same.
// use is a rule of its own, and a version without it refuses {}; so ruleGroups without it need none.
// exclude is a rule of its own, too.
// cel.whenMissing is a field of revision 1, because it is older than the first release.
var ruleFields = map[int]map[string]string{
	1: {
		"move": "from to", "format": "from template to", "default": "from to value valueFrom", "values": "from to table",
		"drop": "from to", "wrap": "from to field", "cast": "from to as unit separator", "index": "from to key value", "exclude": "from to without values", "cel": "from to forward backward bounds whenMissing", "use": "group from to",
	},
}

// TestFieldsOfRulesHaveARevision checks that no field of a rule was added without a revision: after a
// downgrade, the rule would convert without the field.
func TestFieldsOfRulesHaveARevision(t *testing.T) {
	known, latest := map[string]bool{}, 0
	for revision, kinds := range ruleFields {
		latest = max(latest, revision)
		for kind, fields := range kinds {
			for field := range strings.FieldsSeq(fields) {
				known[kind+"."+field] = true
			}
		}
	}
	if latest != APIRevision {
		t.Errorf("APIRevision is %d, and the latest revision with a field is %d", APIRevision, latest)
	}
	for member := range reflect.TypeFor[Rule]().Fields() {
		for field := range member.Type.Elem().Fields() {
			if name := jsonName(member) + "." + jsonName(field); !known[name] {
				t.Errorf("the field %s of a rule has no API revision: increment APIRevision, add the field to ruleFields with it, "+
					"and add a CEL rule to ConversionPolicySpec that refuses the field below that spec.apiRevision", name)
			}
		}
	}
	if marker := fmt.Sprintf(`rule="self <= %d || (oldSelf`, APIRevision); !strings.Contains(contentOf(t, "conversionpolicy_types.go"), marker) {
		t.Errorf("conversionpolicy_types.go does not have, above apiRevision, %s", marker)
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
