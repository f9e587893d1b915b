// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Username returns the user name of the client, as admission policies see it. It is empty if the
// cluster does not let accounts ask for their name, as it does by default.
func Username(ctx context.Context, writer client.Writer) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := writer.Create(ctx, review)
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Info("Admission policies do not protect spec.conversion: the manager may not ask for its user name", "reason", err.Error())
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking for the user name of the manager: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
