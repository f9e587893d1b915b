// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OwnTarget is a converter of which nothing is known but where it is.
type OwnTarget struct {
	// Address is its host, or IP address, and port.
	Address string
	// CABundle is the caBundle of the CustomResourceDefinition, in PEM. Nothing
	// else is trusted.
	CABundle []byte
	// ServerName is the name that the certificate must be valid for.
	ServerName string
	// Path where it answers ConversionReviews.
	Path string
	// ReviewVersion is the version of the ConversionReviews that API servers send.
	ReviewVersion string
	// Canaries are converted there and back.
	Canaries []OwnCanary
}

// OwnCanary is objects of one version, to be converted to another one and back.
type OwnCanary struct {
	// From and To are group and version.
	From, To string
	// Objects are made up. A converter may refuse some of them, and not all.
	Objects [][]byte
}

// Own probes a converter for as long as ctx allows: its certificate, and that its
// answers are what API servers accept, with the metadata that was sent. What it
// does with fields is its author's business: what does not come back from another
// version is a warning. The error is as that of Pod.
func Own(ctx context.Context, target OwnTarget) (warnings []string, err error) {
	connection, err := dial(ctx, &Target{Address: target.Address, CABundle: target.CABundle, ServerName: target.ServerName})
	if err != nil {
		return nil, err
	}
	defer connection.close()
	connection.path, connection.version = target.Path, target.ReviewVersion
	for _, canary := range target.Canaries {
		found, err := connection.roundTrips(ctx, canary)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, found...)
	}
	return warnings, nil
}

// roundTrips wants at least one of the objects to be converted.
func (c *connection) roundTrips(ctx context.Context, canary OwnCanary) ([]string, error) {
	var warnings []string
	var refusals []error
	for _, object := range canary.Objects {
		lost, err := c.roundTrip(ctx, canary, object)
		if refused, ok := errors.AsType[*refusal](err); ok {
			refusals = append(refusals, refused)
			continue
		}
		if err != nil {
			return nil, err
		}
		if lost != "" {
			warnings = append(warnings, fmt.Sprintf("an object that goes from %s to %s and back is not the same: %s", canary.From, canary.To, lost))
		}
	}
	if len(refusals) == len(canary.Objects) && len(refusals) > 0 {
		return nil, refusals[0]
	}
	for _, refusal := range refusals {
		warnings = append(warnings, "the converter refuses an object that was made up from the schema: "+refusal.Error())
	}
	return warnings, nil
}

// roundTrip says what is lost of an object on the way there and back.
func (c *connection) roundTrip(ctx context.Context, canary OwnCanary, object []byte) (string, error) {
	original, err := parseObject(object)
	if err != nil {
		return "", fmt.Errorf("the canary from %s is not an object: %w", canary.From, err)
	}
	there, err := c.answer(ctx, original, canary.From, canary.To, object)
	if err != nil {
		return "", err
	}
	back, err := c.answer(ctx, original, canary.To, canary.From, there)
	if err != nil {
		return "", err
	}
	before, err := decodeExact(object)
	if err != nil {
		return "", err
	}
	after, err := decodeExact(back)
	if err != nil {
		return "", err
	}
	return lost("", before, after), nil
}

// answer converts one object, and checks it as an API server does. Labels and
// annotations of the original must be in it: API servers take them over. Others
// are the converter's, which may keep fields there and take them out again.
func (c *connection) answer(ctx context.Context, original *unstructured.Unstructured, from, to string, object []byte) ([]byte, error) {
	objects, err := c.review(ctx, to, [][]byte{object})
	if err != nil {
		return nil, err
	}
	if _, err := checkObject(original, objects[0], to); err != nil {
		return nil, canaryFailed(from, to, "the answer is not acceptable to an API server: %s", err)
	}
	converted, err := parseObject(objects[0])
	if err != nil {
		return nil, canaryFailed(from, to, "%s", err)
	}
	lost := cmp.Or(
		missing("metadata.labels", original.GetLabels(), converted.GetLabels()),
		missing("metadata.annotations", original.GetAnnotations(), converted.GetAnnotations()))
	if lost != "" {
		return nil, canaryFailed(from, to, "the answer has lost, or changed, %s: API servers take labels and annotations from it", lost)
	}
	return objects[0], nil
}

// missing names the first entry of want that got lacks, or has another value of.
func missing(what string, want, got map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Sprintf("%s[%q]", what, name)
		}
	}
	return ""
}

// lost names the first field of want that got lacks, or has another value of, and
// is empty where there is none. What got has more is not lost.
func lost(path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return describe(path, "is gone")
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if path == "" && name == "metadata" {
				continue
			}
			if _, there := got[name]; !there {
				return describe(path+member(name), "is gone")
			}
			if found := lost(path+member(name), want[name], got[name]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) < len(want) {
			return describe(path, "is gone, or shorter")
		}
		for i := range want {
			if found := lost(path+"["+strconv.Itoa(i)+"]", want[i], got[i]); found != "" {
				return found
			}
		}
		return ""
	}
	return difference(path, want, got)
}
