// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSARIF: the log has what the standard and code scanning in GitHub require. A path is a URI, and no finding has a
// level or a line that the standard does not have.
func TestSARIF(t *testing.T) {
	report := Report{Command: "verify", Version: "v1", Rules: []Rule{{"Lost", "A field is lost"}}, Findings: []Finding{
		{Rule: "Lost", Level: Error, Message: "<a> is lost", Path: "./my files/100%.yaml", Line: 3},
		{Rule: "Lost", Level: Note, Message: "b", Path: "/a/b.yaml"},
		{Rule: "Lost", Level: Warning, Message: "c"},
	}}
	var written strings.Builder
	expect.NoError(t, report.WriteSARIF(&written))
	object := func(name string, value any) map[string]any { return map[string]any{name: value} }
	at := func(place map[string]any) []any { return []any{object("physicalLocation", place)} }
	expect.Equal[any](t, "log", map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{
			"tool": object("driver", map[string]any{
				"name": "conversion-operator", "version": "v1",
				"rules": []any{map[string]any{"id": "Lost", "shortDescription": object("text", "A field is lost")}},
			}),
			"results": []any{
				map[string]any{"ruleId": "Lost", "level": "error", "message": object("text", "<a> is lost"), "locations": at(map[string]any{
					"artifactLocation": object("uri", "my%20files/100%25.yaml"), "region": object("startLine", json.Number("3")),
				})},
				map[string]any{"ruleId": "Lost", "level": "note", "message": object("text", "b"), "locations": at(object("artifactLocation", object("uri", "/a/b.yaml")))},
				map[string]any{"ruleId": "Lost", "level": "warning", "message": object("text", "c")},
			},
		}},
	}, expect.JSON(t, written.String()))
}
