// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSARIF: the log has what the standard and code scanning in GitHub require. A path is a URI, and a finding in no file,
// or in a whole file, has a place with a line, too.
func TestSARIF(t *testing.T) {
	report := Report{Command: "verify", Version: "v1", Subject: "widgets.example.com", Rules: []Rule{{"Lost", "A field is lost"}}, Findings: []Finding{
		{Rule: "Lost", Level: Error, Message: "<a> is lost", Path: "./my files/100%.yaml", Line: 3},
		{Rule: "Lost", Level: Note, Message: "b", Path: "/a/b.yaml"},
		{Rule: "Lost", Level: Warning, Message: "c"},
	}}
	var written strings.Builder
	expect.NoError(t, report.WriteSARIF(&written))
	object := func(name string, value any) map[string]any { return map[string]any{name: value} }
	found := func(level, text, uri, line string) map[string]any {
		return map[string]any{"ruleId": "Lost", "level": level, "message": object("text", text), "locations": []any{object("physicalLocation", map[string]any{
			"artifactLocation": object("uri", uri), "region": object("startLine", json.Number(line)),
		})}}
	}
	expect.Equal[any](t, "log", map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{
			"tool": object("driver", map[string]any{
				"name": "conversion-operator", "version": "v1",
				"rules": []any{map[string]any{"id": "Lost", "shortDescription": object("text", "A field is lost")}},
			}),
			"results": []any{
				found("error", "<a> is lost", "my%20files/100%25.yaml", "3"),
				found("note", "b", "/a/b.yaml", "1"),
				found("warning", "c", "widgets.example.com", "1"),
			},
		}},
	}, expect.JSON(t, written.String()))
}
