// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Converters that users run may be in any namespace. Watching all Services and endpoints for
// the sake of a few would cost memory, so they are read live.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list

// observeExternal reads the endpoints of a converter that users run.
func (r *ConversionPolicyReconciler) observeExternal(ctx context.Context, state *observed.Cluster) error {
	converter := state.Policy.Spec.Converter.WithDefaults()
	if converter.URL != nil {
		state.External = externalURL(string(converter.URL.URL))
		return nil
	}
	if converter.Service == nil {
		return nil
	}
	var err error
	state.External, err = r.externalService(ctx, converter.Service)
	return err
}

// externalURL returns the host of a URL. The API server has validated the URL.
func externalURL(text string) observed.External {
	parsed, err := url.Parse(text)
	if err != nil {
		return observed.External{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.converter.url.url: " + err.Error()}
	}
	port := cmp.Or(parsed.Port(), "443")
	number, _ := strconv.ParseInt(port, 10, 32) // url.Parse has validated it
	return observed.External{Endpoints: []observed.Pod{{
		Name: net.JoinHostPort(parsed.Hostname(), port), IP: parsed.Hostname(), Port: int32(number), Scheduled: true, Ready: true}}}
}

func (r *ConversionPolicyReconciler) externalService(ctx context.Context, wanted *v1alpha1.ServiceConverter) (observed.External, error) {
	service := &corev1.Service{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: wanted.Namespace, Name: wanted.Name}, service)
	if apierrors.IsNotFound(err) {
		return observed.External{Reason: v1alpha1.ReasonNotFound, Message: fmt.Sprintf(
			"Service %s/%s does not exist: create it, or correct spec.converter.service", wanted.Namespace, wanted.Name)}, nil
	}
	if err != nil {
		return observed.External{}, err
	}
	i := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == wanted.Port })
	if i < 0 {
		return observed.External{Reason: v1alpha1.ReasonNotFound, Message: fmt.Sprintf(
			"Service %s/%s has no port %d: it has %s; correct spec.converter.service.port", wanted.Namespace, wanted.Name, wanted.Port, portsOf(service))}, nil
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Live.List(ctx, list, client.InNamespace(wanted.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: wanted.Name}); err != nil {
		return observed.External{}, err
	}
	return observed.External{Endpoints: endpointsOf(list.Items, service.Spec.Ports[i].Name)}, nil
}

func portsOf(service *corev1.Service) string {
	var ports []string
	for _, port := range service.Spec.Ports {
		ports = append(ports, strconv.Itoa(int(port.Port)))
	}
	return fmt.Sprint(ports)
}

// endpointsOf returns the addresses behind one port of a Service, sorted. While slices are
// rearranged, several may list the same address; it is ready if one of them reports so.
func endpointsOf(list []discoveryv1.EndpointSlice, portName string) []observed.Pod {
	var endpoints []observed.Pod
	for _, slice := range list {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Name, "") != portName || port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				for _, address := range endpoint.Addresses {
					endpoints = append(endpoints, observed.Pod{
						Name: net.JoinHostPort(address, strconv.Itoa(int(*port.Port))),
						IP:   address, Port: *port.Port, Scheduled: true, Ready: ptr.Deref(endpoint.Conditions.Ready, true)})
				}
			}
		}
	}
	slices.SortFunc(endpoints, func(a, b observed.Pod) int {
		switch byName := cmp.Compare(a.Name, b.Name); {
		case byName != 0 || a.Ready == b.Ready:
			return byName
		case a.Ready:
			return -1
		}
		return 1
	})
	return slices.CompactFunc(endpoints, func(a, b observed.Pod) bool { return a.Name == b.Name })
}
