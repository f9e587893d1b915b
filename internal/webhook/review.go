// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

const reviewKind = "ConversionReview"

// review is the request of a ConversionReview. v1 and v1beta1 have the same shape.
type review struct {
	apiVersion string
	kind       string
	// uid ties the answer to the request.
	uid string
	// desired is the group and version to convert to.
	desired string
	// objects are spans of the body. They may be at different versions, and are
	// valid only as far as their brackets balance.
	objects [][]byte
}

// parseReview finds the members of a ConversionReview, which may come in any
// order. Members that it does not know are skipped; of a member that comes
// twice, the last counts.
func parseReview(body []byte) (review, error) {
	var r review
	s := scanner{data: body}
	err := s.object(func(name string) error {
		switch name {
		case "apiVersion":
			return within(name, s.text(&r.apiVersion))
		case "kind":
			return within(name, s.text(&r.kind))
		case "request":
			return within(name, r.parseRequest(&s))
		default:
			_, err := s.value()
			return err
		}
	})
	if err == nil {
		err = s.end()
	}
	return r, err
}

func (r *review) parseRequest(s *scanner) error {
	r.uid, r.desired, r.objects = "", "", nil
	return s.object(func(name string) error {
		switch name {
		case "uid":
			return within(name, s.text(&r.uid))
		case "desiredAPIVersion":
			return within(name, s.text(&r.desired))
		case "objects":
			return within(name, r.parseObjects(s))
		default:
			_, err := s.value()
			return err
		}
	})
}

func (r *review) parseObjects(s *scanner) error {
	r.objects = nil
	return s.list(func() error {
		object, err := s.value()
		r.objects = append(r.objects, object)
		return err
	})
}

// check says whether the body is a review at all, and one that can be answered:
// in a version that this server knows, and with a uid that ties the answer to it.
func (r *review) check() error {
	if r.kind != reviewKind {
		return fmt.Errorf("kind is %q, not %q", r.kind, reviewKind)
	}
	switch r.apiVersion {
	case apiextensionsv1.SchemeGroupVersion.String(), apiextensionsv1beta1.SchemeGroupVersion.String():
	default:
		return fmt.Errorf("apiVersion is %q, but reviews are answered in %s and %s only: correct conversionReviewVersions of the CustomResourceDefinition",
			r.apiVersion, apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion)
	}
	if r.uid == "" {
		return errors.New("request.uid is missing")
	}
	return nil
}

// version returns the version to convert to. Its group must be the one that the
// converter has rules for.
func (r *review) version(group string) (string, error) {
	if r.desired == "" {
		return "", errors.New("request.desiredAPIVersion is missing")
	}
	desiredGroup, version, _ := strings.Cut(r.desired, "/")
	if desiredGroup != group {
		return "", fmt.Errorf("this converter serves %s, but the request is for %s: the CustomResourceDefinition refers to the wrong webhook", group, r.desired)
	}
	if version == "" || strings.Contains(version, "/") {
		return "", fmt.Errorf("request.desiredAPIVersion is %q, not %s/<version>", r.desired, group)
	}
	return version, nil
}

func within(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
