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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// OwnTarget is a converter that the operator does not manage, such as that of another project.
type OwnTarget struct {
	// Address is its host name or IP address, and port.
	Address string
	// CABundle is the caBundle of the CustomResourceDefinition, in PEM. No other certificate is
	// trusted.
	CABundle []byte
	// ServerName is the name that the certificate must be valid for.
	ServerName string
	// Path is the path of ConversionReviews.
	Path string
	// ReviewVersion is the version of the ConversionReviews that API servers send.
	ReviewVersion string
	// Canaries are converted, and converted back.
	Canaries []OwnCanary
}

// OwnCanary are objects of one version to convert to another version and back.
type OwnCanary struct {
	// From and To are a group and version each.
	From, To string
	// Objects are generated from the schema. A converter may refuse some of them, but not all.
	Objects [][]byte
}

// Own probes a converter until ctx ends: its certificate, and that API servers accept its answers
// and the metadata is preserved. How it converts fields is up to its author, so a field that is
// lost in a round trip is only a warning. The error is like that of Pod.
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

// roundTrips converts the objects of a canary there and back. At least one of them must be
// converted.
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

// roundTrip returns what an object loses on the way there and back.
func (c *connection) roundTrip(ctx context.Context, canary OwnCanary, object []byte) (string, error) {
	original, err := parseObject(object)
	if err != nil {
		return "", fmt.Errorf("the canary from %s is not an object: %w", canary.From, err)
	}
	there, _, err := c.convertChecked(ctx, original, canary.From, canary.To, object)
	if err != nil {
		return "", err
	}
	_, after, err := c.convertChecked(ctx, original, canary.To, canary.From, there)
	if err != nil {
		return "", err
	}
	before, err := preserved.Decode(object)
	if err != nil {
		return "", err
	}
	if object, is := before.(map[string]any); is {
		delete(object, "metadata") // convertChecked compares it
	}
	return difference("", before, after, true), nil
}

// convertChecked converts one object and checks the answer like an API server. It returns the answer
// as text, and decoded. The answer must have all labels and annotations of the original, because API
// servers copy them from it. The converter may add others, for example to preserve fields.
func (c *connection) convertChecked(ctx context.Context, original *unstructured.Unstructured, from, to string, object []byte) (text []byte, values any, err error) {
	objects, err := c.review(ctx, to, [][]byte{object})
	if err != nil {
		return nil, nil, err
	}
	if values, err = checkObject(original, objects[0], to); err != nil {
		return nil, nil, canaryFailed(from, to, "the answer is not acceptable to an API server: %s", err)
	}
	var converted unstructured.Unstructured
	converted.Object, _ = values.(map[string]any) // which checkObject has checked
	lost := cmp.Or(
		missing("metadata.labels", original.GetLabels(), converted.GetLabels()),
		missing("metadata.annotations", original.GetAnnotations(), converted.GetAnnotations()))
	if lost != "" {
		return nil, nil, canaryFailed(from, to, "the answer has lost, or changed, %s: API servers take labels and annotations from it", lost)
	}
	return objects[0], values, nil
}

// missing names the first entry of want that got lacks or has with another value.
func missing(field string, want, got map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Sprintf("%s[%q]", field, name)
		}
	}
	return ""
}
