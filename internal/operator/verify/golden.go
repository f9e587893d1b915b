// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// GoldenFormat is that of golden files. It is raised when a reader of an older one would misread it.
const GoldenFormat = 1

// MaxGolden limits a golden file, in bytes: people review it, and it is in git. The objects leave room for the head.
const (
	MaxGolden   = 1 << 20
	maxRecorded = MaxGolden - 16<<10
)

// goldenHead is the first document of a golden file: what the recorded conversions depend on.
type goldenHead struct {
	Format      int    `json:"format"`
	Policy      string `json:"policy"`
	RulesetHash string `json:"rulesetHash"`
	// SchemaHashes are by version.
	SchemaHashes map[string]string `json:"schemaHashes"`
	// Objects is the number of documents that follow.
	Objects int `json:"objects"`
}

// goldenObject is each other document: an object, and what it becomes at other versions.
type goldenObject struct {
	Object  any            `json:"object"`
	Results []goldenResult `json:"results"`

	// place is where it was read.
	place string
}

type goldenResult struct {
	// Object is without its preserved data.
	Object any `json:"object"`
	// Preserved is the preserved data by its version, without its format and what identifies the rules.
	Preserved map[string]any `json:"preserved,omitempty"`
}

// Golden has conversions that were recorded in a golden file.
type Golden struct {
	file    string
	head    goldenHead
	objects []goldenObject
}

// Compared counts the recorded conversions that were repeated.
type Compared struct {
	// From is the golden file.
	From        string `json:"from"`
	Conversions int    `json:"conversions"`
	// Differ counts those with another result.
	Differ int `json:"differ"`
}

// recording is a golden file in the making.
type recording struct {
	text          strings.Builder
	objects, left int
	err           error
}

// ofServer are the members of metadata that an API server sets, and that differ each time.
var ofServer = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// Record makes the Checker record the conversions of the objects that it checks from now on.
func (c *Checker) Record() { c.recording = &recording{} }

// Recorded returns the text of a golden file, the number of objects in it, and of those that did not fit into MaxGolden.
// Equal objects, rules and schemas give equal bytes.
func (c *Checker) Recorded() (text string, objects, left int, err error) {
	head, err := encodeGolden(goldenHead{GoldenFormat, c.report.Policy, c.report.RulesetHash, c.schemaHashes(), c.recording.objects})
	return head + c.recording.text.String(), c.recording.objects, c.recording.left, errors.Join(err, c.recording.err)
}

// record records an object that can be converted to another version.
func (c *Checker) record(t testObject) {
	t.start = withoutServer(t.start)
	entry := goldenObject{Object: t.start.tree}
	for _, to := range c.ruleset.Versions {
		if to == t.version {
			continue
		}
		if converted, _, err := c.convert(t, t.start, to); err == nil { // the round trip reports an error
			entry.Results = append(entry.Results, c.goldenResult(converted))
		}
	}
	if len(entry.Results) == 0 {
		return
	}
	text, err := encodeGolden(entry)
	c.recording.err = errors.Join(c.recording.err, err)
	if c.recording.text.Len()+len(text) > maxRecorded {
		c.recording.left++
		return
	}
	c.recording.objects++
	c.recording.text.WriteString("---\n" + text)
}

// withoutServer returns an object without what an API server sets. It does not change the object.
func withoutServer(x value) value {
	members, _ := x.tree.(map[string]any)
	metadata, _ := members["metadata"].(map[string]any)
	members, metadata = maps.Clone(members), maps.Clone(metadata)
	for _, name := range ofServer {
		delete(metadata, name)
	}
	members["metadata"] = metadata
	return value{preserved.Encode(members), members}
}

func (c *Checker) goldenResult(converted value) goldenResult {
	result := goldenResult{Object: c.resource().Without(converted.tree)}
	for _, version := range c.ruleset.Versions {
		entries := c.resource().Entries(converted.tree, version)
		if len(entries) == 0 {
			continue
		}
		for i := range entries {
			entries[i].Rules = ""
		}
		data, _ := preserved.Decode(preserve.Data{Entries: entries}.Encode(nil)) // it was just encoded
		members, _ := data.(map[string]any)
		delete(members, "rules")
		delete(members, "format")
		if result.Preserved == nil {
			result.Preserved = map[string]any{}
		}
		result.Preserved[version] = members
	}
	return result
}

func (c *Checker) schemaHashes() map[string]string {
	hashes := map[string]string{}
	for _, name := range c.ruleset.Versions {
		hashes[name] = schemaHash(c.versions[name].source)
	}
	return hashes
}

func schemaHash(of *apiextensionsv1.CustomResourceDefinitionVersion) string {
	text, _ := json.Marshal(of.Schema) // it was read from JSON
	return conversion.HashOf(text)
}

func encodeGolden(document any) (string, error) { return manifest.Encode(preserved.Encode(document)) }

// damaged ends the errors about golden files.
const damaged = "the file is damaged, or none that verify --record has written: record it again"

// ReadGolden reads the text of a golden file. Errors name the file, and the document.
func ReadGolden(file string, text []byte) (*Golden, error) {
	documents, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	golden := &Golden{file: file}
	for i, document := range documents {
		var into any = &golden.head
		if i > 0 {
			golden.objects = append(golden.objects, goldenObject{place: document.String()})
			into = &golden.objects[i-1]
		}
		decoder := json.NewDecoder(bytes.NewReader(document.JSON))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(into); err == nil && i > 0 {
			err = golden.objects[i-1].check()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", document, err, damaged)
		}
		if i == 0 && golden.head.Format != GoldenFormat {
			return nil, fmt.Errorf("%s: format is %d, and this program reads %d: %s", document, golden.head.Format, GoldenFormat, damaged)
		}
	}
	if len(documents) == 0 || len(golden.objects) != golden.head.Objects {
		return nil, fmt.Errorf("%s: it has %s, and should have %d: %s", file, count(len(golden.objects), "object"), golden.head.Objects, damaged)
	}
	return golden, nil
}

func (o goldenObject) check() error {
	version := versionOf(o.Object)
	if version == "" || len(o.Results) == 0 {
		return errors.New("it has no object, or no results")
	}
	for i, result := range o.Results {
		if to := versionOf(result.Object); to == "" || to == version {
			return fmt.Errorf("results[%d] is no object of another version", i)
		}
	}
	return nil
}

// versionOf returns the version of an object, empty if it has none.
func versionOf(tree any) string {
	members, _ := tree.(map[string]any)
	apiVersion, _ := members["apiVersion"].(string)
	_, version, _ := strings.Cut(apiVersion, "/")
	return version
}

// Compare repeats the conversions of a golden file, and records what differs. It warns about other rules and schemas.
func (c *Checker) Compare(golden *Golden) error {
	if golden.head.Policy != c.report.Policy {
		return fmt.Errorf("%s has conversions of %s, and the policy is %s: pass the file of this policy", golden.file, golden.head.Policy, c.report.Policy)
	}
	c.warnOfHashes(golden)
	c.report.Golden = &Compared{From: golden.file}
	for _, recorded := range golden.objects {
		object := manifest.NewObject(recorded.place, preserved.Encode(recorded.Object))
		t := testObject{name: object.String(), version: versionOf(recorded.Object)}
		created := fmt.Errorf("the policy does not convert version %q", t.version)
		if of := c.versions[t.version]; of != nil {
			t.start, _, created = of.create(object.JSON)
		}
		for _, result := range recorded.Results {
			c.report.Golden.Conversions++
			if !c.isAsRecorded(t, result, created) {
				c.report.Golden.Differ++
			}
		}
	}
	return nil
}

// isAsRecorded repeats a conversion, and records what differs.
func (c *Checker) isAsRecorded(t testObject, recorded goldenResult, err error) bool {
	to := versionOf(recorded.Object)
	var converted value
	switch {
	case err != nil:
	case !slices.Contains(c.ruleset.Versions, to):
		err = fmt.Errorf("the policy does not convert to version %q", to)
	default:
		converted, _, err = c.convert(t, t.start, to)
	}
	if err != nil {
		c.tally.record(NotAsRecorded, t.version, to, Example{Object: t.name, Message: err.Error()})
		return false
	}
	result := c.goldenResult(converted)
	found := Differences(recorded.Object, result.Object)
	compare("preserved", recorded.Preserved, result.Preserved, func(d Difference) { found = append(found, d) })
	for _, d := range found {
		c.tally.record(NotAsRecorded, t.version, to, exampleOf(t.name, []Difference{d}))
	}
	return len(found) == 0
}

// warnOfHashes warns if the rules or schemas are not those with which the conversions were recorded.
func (c *Checker) warnOfHashes(golden *Golden) {
	warn := func(what, before, after string) {
		if before != after {
			c.Warn(fmt.Sprintf("%s was recorded with another %s: its hash was %s, and is %s now", golden.file, what, orNone(before), orNone(after)))
		}
	}
	warn("ruleset", golden.head.RulesetHash, c.report.RulesetHash)
	hashes := c.schemaHashes()
	names := slices.AppendSeq(slices.Collect(maps.Keys(hashes)), maps.Keys(golden.head.SchemaHashes))
	slices.Sort(names)
	for _, version := range slices.Compact(names) {
		warn("schema of "+version, golden.head.SchemaHashes[version], hashes[version])
	}
}

func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}
