// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/podspec"
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
