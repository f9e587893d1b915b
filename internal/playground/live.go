// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/report"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// Tested is the result of verify for other objects than those of the page.
type Tested struct {
	Problems []Problem      `json:"problems"`
	Outcome  verify.Outcome `json:"outcome"`
	Title    string         `json:"title"`
	// Tried is HTML: the details.
	Tried string `json:"tried"`
}

// Test tests the policy of the page on objects that verify gets from elsewhere.
func Test(
	ctx context.Context, in Input, try func(context.Context, *v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition) (*verify.Report, error),
) (*Tested, error) {
	crd, err := in.definition(ctx)
	if err != nil {
		return &Tested{Problems: whole(TextCRD, err)}, nil
	}
	policy, _, err := in.policy(ctx)
	if err != nil {
		return &Tested{Problems: whole(TextPolicy, err)}, nil
	}
	found, err := try(ctx, policy, crd)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := report.WriteTried(&text, found); err != nil {
		return nil, err
	}
	return &Tested{Problems: []Problem{}, Outcome: found.Outcome, Title: found.Title(), Tried: text.String()}, nil
}
