// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostRelease bounds the memory for a release record: a Secret of 1 MiB may expand to a gigabyte.
const mostRelease = 64 << 20

// Release is the record of one revision of a Helm release. Helm stores it in a Secret or ConfigMap,
// as JSON in gzip in base64.
type Release struct {
	Name      string
	Namespace string
	Revision  int
	// Status is the status of the revision, such as deployed.
	Status  string
	members map[string]json.RawMessage
	// texts are the manifests of the release and of its hooks.
	texts []string
	hooks []map[string]json.RawMessage
}

// DecodeRelease reads the field release of a record.
func DecodeRelease(encoded []byte) (*Release, error) {
	compressed, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	content := compressed
	if bytes.HasPrefix(compressed, []byte{0x1f, 0x8b}) { // Helm 2 did not compress
		reader, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		if content, err = io.ReadAll(io.LimitReader(reader, mostRelease+1)); err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
	}
	if len(content) > mostRelease {
		return nil, fmt.Errorf("decompress: the record is larger than %d MiB", mostRelease>>20)
	}
	return newRelease(content)
}

func newRelease(content []byte) (*Release, error) {
	var known struct {
		Name      string
		Namespace string
		Version   int
		Manifest  string
		Info      struct{ Status string }
		Hooks     []map[string]json.RawMessage
	}
	r := &Release{members: map[string]json.RawMessage{}}
	if err := errors.Join(json.Unmarshal(content, &known), json.Unmarshal(content, &r.members)); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	r.Name, r.Namespace, r.Revision, r.Status, r.hooks = known.Name, known.Namespace, known.Version, known.Info.Status, known.Hooks
	r.texts = []string{known.Manifest}
	for _, hook := range r.hooks {
		var manifest string
		if text, has := hook["manifest"]; has {
			if err := json.Unmarshal(text, &manifest); err != nil {
				return nil, fmt.Errorf("decode the manifest of a hook: %w", err)
			}
		}
		r.texts = append(r.texts, manifest)
	}
	return r, nil
}

// Pending reports whether Helm is changing the release, or stopped while it did.
func (r *Release) Pending() bool {
	return strings.HasPrefix(r.Status, "pending-") || r.Status == "uninstalling"
}

// Count returns the number of objects in the manifests that name a version which goes, and the
// version of the first.
func (r *Release) Count(t *Target) (objects int, version string, err error) {
	for _, text := range r.texts {
		places, err := t.inManifest(text)
		if err != nil {
			return 0, "", err
		}
		if objects += len(places); version == "" && len(places) > 0 {
			version = places[0].version
		}
	}
	return objects, version, nil
}

// In returns the dependent that a record is.
func (r *Release) In(t *Target, record Object) ([]Dependent, error) {
	objects, version, err := r.Count(t)
	if err != nil || objects == 0 {
		return nil, err
	}
	cure := fmt.Sprintf("change the chart to %s, and upgrade the release while %s is served; or run the command with --repair", t.To, version)
	if r.Pending() {
		cure = fmt.Sprintf("its status is %s: wait for Helm, or roll the release back; then run the command again", r.Status)
	}
	return []Dependent{{
		Dependency: HelmRelease, Impact: Breaks, Object: record, Version: version, Count: objects, Repairable: !r.Pending(),
		Client: fmt.Sprintf("release %s, revision %d", r.Name, r.Revision), Field: "manifest",
		Effect: fmt.Sprintf("helm upgrade, rollback and uninstall fail: unable to build kubernetes objects from current release manifest: no matches for kind %q in version %q",
			t.Kind, t.APIVersion(version)),
		Cure: cure,
	}}, nil
}

// Repair changes the apiVersion of those objects in the manifests. Everything else stays.
func (r *Release) Repair(t *Target) error {
	hooksChanged := false
	for i, text := range r.texts {
		places, err := t.inManifest(text)
		if err != nil {
			return err
		}
		if len(places) == 0 {
			continue
		}
		if r.texts[i], err = replaceVersions(text, places, t); err != nil {
			return err
		}
		encoded, err := json.Marshal(r.texts[i])
		if err != nil {
			return err
		}
		if i == 0 {
			r.members["manifest"] = encoded
		} else {
			r.hooks[i-1]["manifest"], hooksChanged = encoded, true
		}
	}
	if !hooksChanged {
		return nil
	}
	hooks, err := json.Marshal(r.hooks)
	r.members["hooks"] = hooks
	return err
}

// Encode returns the field release of the record, as Helm writes it.
func (r *Release) Encode() ([]byte, error) {
	content, err := json.Marshal(r.members)
	if err != nil {
		return nil, err
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = writer.Write(content); err == nil {
		err = writer.Close()
	}
	return []byte(base64.StdEncoding.EncodeToString(compressed.Bytes())), err
}

// named is the place of an apiVersion in a manifest. Lines and columns start at 1.
type named struct {
	line, column int
	value        string
	version      string
}

// inManifest returns the places where objects of a manifest name a version which goes.
func (t *Target) inManifest(manifest string) ([]named, error) {
	if !strings.Contains(manifest, t.Group+"/") {
		return nil, nil
	}
	var found []named
	decoder := yaml.NewDecoder(strings.NewReader(manifest))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest of the release: %w", err)
		}
		for _, root := range document.Content {
			found = append(found, t.inObject(root)...)
		}
	}
}

// inObject returns the place in an object, or those in the items of a list.
func (t *Target) inObject(object *yaml.Node) []named {
	if object.Kind != yaml.MappingNode {
		return nil
	}
	members := map[string]*yaml.Node{}
	for i := 0; i+1 < len(object.Content); i += 2 {
		members[object.Content[i].Value] = object.Content[i+1]
	}
	apiVersion, kind, items := members["apiVersion"], members["kind"], members["items"]
	if apiVersion == nil || kind == nil {
		return nil
	}
	if version, names := t.Names(apiVersion.Value, kind.Value); names {
		return []named{{apiVersion.Line, apiVersion.Column, apiVersion.Value, version}}
	}
	var found []named
	if strings.HasSuffix(kind.Value, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			found = append(found, t.inObject(item)...)
		}
	}
	return found
}

// replaceVersions changes only the text of the apiVersions.
func replaceVersions(manifest string, places []named, t *Target) (string, error) {
	lines := strings.SplitAfter(manifest, "\n")
	// From the end, so that columns of earlier places of a line stay valid.
	for _, place := range slices.Backward(places) {
		var line []rune
		if place.line <= len(lines) { // YAML has more line breaks than \n
			line = []rune(lines[place.line-1])
		}
		at := min(place.column-1, len(line))
		before, after := string(line[:at]), string(line[at:])
		if quote := after[:min(1, len(after))]; quote == `"` || quote == "'" {
			before, after = before+quote, after[1:]
		}
		after, found := strings.CutPrefix(after, place.value)
		if !found {
			return "", fmt.Errorf("line %d of the manifest writes the apiVersion in an unusual form: change the record yourself", place.line)
		}
		lines[place.line-1] = before + t.APIVersion(t.To) + after
	}
	changed := strings.Join(lines, "")
	if remaining, err := t.inManifest(changed); err != nil || len(remaining) > 0 {
		return "", errors.Join(errors.New("the changed manifest still names the version: change the record yourself"), err)
	}
	return changed, nil
}

// HelmMap returns a mapping file for the Helm plugin mapkubeapis, which repairs all releases that
// it is given. The plugin replaces the text of two lines, in either order. It compares the version
// of Kubernetes, which has nothing to do with custom resources: every cluster has 1.0.
func HelmMap(t *Target, versions []string) ([]byte, error) {
	type mapping struct {
		DeprecatedAPI       string `yaml:"deprecatedAPI"`
		NewAPI              string `yaml:"newAPI"`
		DeprecatedInVersion string `yaml:"deprecatedInVersion"`
		RemovedInVersion    string `yaml:"removedInVersion"`
	}
	var all []mapping
	for _, version := range versions {
		for _, form := range []string{"apiVersion: %s\nkind: %s\n", "kind: %[2]s\napiVersion: %[1]s\n"} {
			all = append(all, mapping{
				fmt.Sprintf(form, t.APIVersion(version), t.Kind), fmt.Sprintf(form, t.APIVersion(t.To), t.Kind), "v1.0.0", "v1.0.0",
			})
		}
	}
	return yaml.Marshal(map[string]any{"mappings": all})
}
