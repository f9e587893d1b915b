// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
)

// ReadManagerPod completes the settings with the ServiceAccount of the manager's pod, and with what
// other pods inherit from it. These fields of a pod do not change while it runs. It reads nothing if
// name is empty. An error means that the pod cannot be read, or does not exist.
func ReadManagerPod(ctx context.Context, reader client.Reader, name string, settings *observed.Settings) error {
	if name == "" {
		return nil
	}
	list := &corev1.PodList{} // the manager may list pods, and not get them
	err := reader.List(ctx, list, client.InNamespace(settings.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("read the manager's pod %s/%s: %w", settings.Namespace, name, err)
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("the manager's pod %s/%s does not exist: --pod, or the environment variable POD_NAME, must be its name", settings.Namespace, name)
	}
	pod := &list.Items[0].Spec
	settings.ManagerAccount, settings.Inherited = pod.ServiceAccountName, podspec.InheritedFrom(pod)
	return nil
}

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
