// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestHostileText parses a report like a browser. For any text of objects, it has only the
// elements and attributes of our templates.
func TestHostileText(t *testing.T) {
	files := inputs["hostile"]
	root, err := html.Parse(strings.NewReader(write(t, read(t, files.policy, files.crd, files.objects))))
	expect.NoError(t, err)
	elements := strings.Fields("html head meta title link style body a header p h1 h2 h3 h4 span div ul ol li b nav main section " +
		"table caption thead tbody tr th td svg line path rect figure figcaption details summary code pre wbr dl dt dd time footer")
	attributes := strings.Fields("lang charset http-equiv content name rel href class id role aria-label aria-labelledby aria-hidden focusable tabindex " +
		"scope width height x y x1 x2 y1 y2 viewbox viewBox preserveAspectRatio d data-from data-to open datetime")
	var text strings.Builder
	for node := range root.Descendants() {
		switch node.Type {
		case html.TextNode:
			text.WriteString(node.Data)
		case html.ElementNode:
			if !slices.Contains(elements, node.Data) {
				t.Errorf("unexpected element %s", node.Data)
			}
			for _, attribute := range node.Attr {
				if !slices.Contains(attributes, attribute.Key) {
					t.Errorf("%s has an attribute %s", node.Data, attribute.Key)
				}
				if attribute.Key == "href" && !strings.HasPrefix(attribute.Val, "#") && attribute.Val != "data:," {
					t.Errorf("%s leads to %s", node.Data, attribute.Val)
				}
			}
		}
	}
	for _, want := range []string{
		"<script>Kind</script>", "</code></pre><script>alert(1)</script>", "<svg onload=alert(3)>", "<img src=x onerror=alert(7)>",
		`.' style='position:fixed`, "&lt;already&gt;", "<script>alert(8)</script>",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %s", want)
		}
	}
}

// TestHiddenValues checks that a report can hide the values of objects.
func TestHiddenValues(t *testing.T) {
	files := inputs["hostile"]
	in := read(t, files.policy, files.crd, files.objects)
	const value = `Invalid value: &#34;integer&#34;`
	if !strings.Contains(write(t, in), value) {
		t.Errorf("%s is not shown", value)
	}
	in.HideValues = true
	hidden := write(t, in)
	if strings.Contains(hidden, value) || !strings.Contains(hidden, "InvalidBefore") {
		t.Error("the report shows a value, or lacks the finding")
	}
}
